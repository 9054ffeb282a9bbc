"""Rules about asynchronous endpoints: what their queue excludes, and which alarms have data."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.async_alarms import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.keys import is_of_region
from slipway.errors import Problem
from slipway.planning.asynchronous import ASYNC
from slipway.planning.deployment import Deployment, problem

_SECTION = ("endpoint", "async_inference")
_KEYS = ("input_key_arn", "output_key_arn", "topic_key_arn")


def queue_serves_one_variant(deployment: Deployment) -> Iterator[Problem]:
    """A request of InvokeEndpointAsync names no variant, and the backlog's metrics have none.

    Sources, read 2026-11-24: InvokeEndpointAsync in botocore 1.44, and
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
    """
    endpoint = deployment.config.endpoint
    if endpoint.mode == ASYNC and endpoint.variants:
        yield problem(
            Code.ASYNC_EXCLUDES,
            f"{len(endpoint.variants)} variants and `mode: async` exclude each other: the queue's "
            "requests and metrics name no variant",
            "Remove `variants`, or set `mode: realtime`.",
            ("endpoint", "variants"),
        )


def queue_is_not_captured(deployment: Deployment) -> Iterator[Problem]:
    """AWS documents data capture for real-time endpoints and batch transform alone.

    Source, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/model-monitor-data-capture.html
    """
    endpoint = deployment.config.endpoint
    if endpoint.mode == ASYNC and endpoint.data_capture is not None:
        yield problem(
            Code.ASYNC_EXCLUDES,
            "`data_capture` and `mode: async` exclude each other: the requests and answers of a "
            "queue lie in S3 already",
            "Remove `data_capture`.",
            ("endpoint", "data_capture"),
        )


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
        yield problem(
            Code.ASYNC_SETTING,
            "`topic_key_arn` has no effect: there is no topic",
            "Add `error_topic_arn` or `success_topic_arn`, or remove it.",
            (*_SECTION, "topic_key_arn"),
        )


def queue_keys_are_in_region(deployment: Deployment) -> Iterator[Problem]:
    """KMS and SNS work with keys of their own region."""
    queue, environment = deployment.config.endpoint.async_inference, deployment.environment
    for name in _KEYS if queue is not None else ():
        key_arn: str | None = getattr(queue, name)
        if key_arn is not None and not is_of_region(key_arn, environment.region):
            yield problem(
                Code.KEY_ELSEWHERE,
                f"the key is in {key_arn.split(':')[3]}, and the endpoint of "
                f"`{environment.name}` in {environment.region}",
                f"Name a key of {environment.region} under `environments: {environment.name}:`.",
                (*_SECTION, name),
            )


RULES = (
    queue_serves_one_variant,
    queue_is_not_captured,
    alarms_have_data,
    queue_settings_have_effect,
    queue_keys_are_in_region,
)
