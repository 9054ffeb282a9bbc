"""Rules about the instance that SageMaker chooses for a request."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.asynchronous import ASYNC
from slipway.planning.deployment import Deployment, problem

PREFIX_AWARE = "prefix_aware"


def prefixes_have_their_section(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker requires both numbers of PrefixAwareRoutingConfig, and takes them nowhere else."""
    endpoint = deployment.config.endpoint
    if endpoint.routing != PREFIX_AWARE:
        if endpoint.prefix_routing is not None:
            yield problem(
                Code.ROUTING_SETTING,
                f"nothing reads `prefix_routing` with `routing: {endpoint.routing}`",
                "Remove it, or set `routing: prefix_aware`.",
                ("endpoint", "prefix_routing"),
            )
        return
    if endpoint.prefix_routing is None:
        yield problem(
            Code.ROUTING_SETTING,
            "`routing: prefix_aware` needs the section `prefix_routing`",
            "Add `endpoint.prefix_routing`.",
            ("endpoint", "routing"),
        )
    if endpoint.mode == ASYNC:
        # botocore's model of PrefixAwareRoutingConfig, 1.44: "a real-time inference endpoint".
        yield problem(
            Code.ROUTING_SETTING,
            "a queue routes by no prefix: `prefix_aware` is for real-time requests",
            "Set another `routing`, or `mode: realtime`.",
            ("endpoint", "routing"),
        )
