"""Rules about requests: the queue of an asynchronous endpoint, its alarms, and routing."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.alarms_of_modes import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import Problem
from slipway.planning.asynchronous import ASYNC
from slipway.planning.deployment import Deployment, problem

_SECTION = ("endpoint", "async_inference")


def alarms_have_data(deployment: Deployment) -> Iterator[Problem]:
    """Refuses alarms on metrics that an endpoint of this mode never publishes."""
    mode, alarms = deployment.config.endpoint.mode, deployment.config.alarms
    for kind in ALARM_KINDS.values():
        if alarms.threshold(kind) is None or watch_of(kind, mode) is not None:
            continue
        yield problem(
            Code.ALARM_OF_MODE,
            f"an endpoint with `mode: {mode}` has no metric for this alarm, which would never get "
            "data",
            "Remove this alarm.",
            ("alarms", kind.field),
        )


def queue_settings_have_effect(deployment: Deployment) -> Iterator[Problem]:
    """A key of topics needs a topic, and so does an answer in a topic's messages."""
    queue = deployment.config.endpoint.async_inference
    if queue is None:
        return
    for index, name in enumerate(queue.include_response_in):
        if name not in queue.include_response_in[:index] and getattr(queue, f"{name}_topic_arn"):
            continue
        yield problem(
            Code.ASYNC_SETTING,
            f"`include_response_in: {name}` has no effect: it is listed twice, or there is no "
            f"`{name}_topic_arn`",
            f"Add `{name}_topic_arn`, or remove `{name}`.",
            (*_SECTION, "include_response_in"),
        )
    if queue.topic_key_arn is None:
        return
    if queue.success_topic_arn is None and queue.error_topic_arn is None:
        message = "`topic_key_arn` has no effect: there is no topic"
        remedy = "Add `error_topic_arn` or `success_topic_arn`, or remove it."
        yield problem(Code.ASYNC_SETTING, message, remedy, (*_SECTION, "topic_key_arn"))


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
    field = ("endpoint", "routing")
    if endpoint.prefix_routing is None:
        message = "`routing: prefix_aware` needs the section `prefix_routing`"
        yield problem(Code.ROUTING_SETTING, message, "Add `endpoint.prefix_routing`.", field)
    if endpoint.mode == ASYNC:
        # botocore's model of PrefixAwareRoutingConfig, 1.44: "a real-time inference endpoint".
        message = "a queue routes by no prefix: `prefix_aware` is for real-time requests"
        remedy = "Set another `routing`, or `mode: realtime`."
        yield problem(Code.ROUTING_SETTING, message, remedy, field)
