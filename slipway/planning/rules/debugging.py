"""Rules about core dumps and sessions of Systems Manager, which show the inside of a container."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.planning.component import SCALE_TO_ZERO
from slipway.planning.deployment import Deployment, Rule, problem

_OPEN = ("endpoint", "ssm_access")


def sessions_reach_the_container(deployment: Deployment) -> Iterator[Problem]:
    """Refuses sessions that AWS does not start.

    "If you have enabled network isolation for a model container [...], you cannot start an SSM
    session": https://docs.aws.amazon.com/sagemaker/latest/dg/ssm-access.html, read 2026-11-29. Of
    inference components, the provider of Terraform says that AWS ignores the setting
    (aws_sagemaker_endpoint_configuration, read 2026-11-29).
    """
    endpoint = deployment.config.endpoint
    if not endpoint.ssm_access:
        return
    if endpoint.network_isolation:
        yield problem(
            Code.SSM_ACCESS,
            "SageMaker starts no session in a container with network isolation",
            "Add `network_isolation: false`, or remove `ssm_access`.",
            _OPEN,
        )
    if endpoint.mode == SCALE_TO_ZERO:
        yield problem(
            Code.COMPONENT_EXCLUDES,
            "`ssm_access` and `mode: scale_to_zero` exclude each other: SageMaker ignores it for "
            "inference components",
            "Remove `ssm_access`, or set `mode: realtime`.",
            _OPEN,
        )


def embedded_aws_has_it(deployment: Deployment) -> Iterator[Problem]:
    """Refuses settings that would have no effect on the embedded AWS."""
    endpoint, environment = deployment.config.endpoint, deployment.environment
    if not environment.is_local:
        return
    for name, lack in (
        ("ssm_access", "has no Systems Manager"),
        ("core_dump", "writes no core dumps"),
    ):
        if getattr(endpoint, name):
            yield problem(
                Code.NOT_EMBEDDED,
                f"`{name}` has no effect in `{environment.name}`: the embedded AWS {lack}",
                f"Move `{name}` to an environment with an account, under `environments`.",
                ("endpoint", name),
            )


RULES: tuple[Rule, ...] = (sessions_reach_the_container, embedded_aws_has_it)
