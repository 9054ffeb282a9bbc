"""The settings of an asynchronous endpoint, in the names of the config."""

from collections.abc import Mapping
from typing import Any

from slipway.config.sections.endpoint import AsyncInference

_SECTION = "endpoint.async_inference"


def planned_queue(queue: AsyncInference | None) -> dict[str, Any]:
    """Returns the settings in the files, without the settings of the role."""
    if queue is None:
        return {}
    failure = queue.failure_output
    return _settings(
        output=queue.output.rstrip("/"),
        failure_output=None if failure is None else failure.rstrip("/"),
        output_key_arn=queue.output_key_arn,
        success_topic_arn=queue.success_topic_arn,
        error_topic_arn=queue.error_topic_arn,
        concurrency=queue.max_concurrent_invocations_per_instance,
    )


def deployed_queue(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings that an endpoint configuration has."""
    queue = config.get("AsyncInferenceConfig")
    if queue is None:
        return {}
    output = queue["OutputConfig"]
    notification = output.get("NotificationConfig", {})
    return _settings(
        output=output.get("S3OutputPath"),
        failure_output=output.get("S3FailurePath"),
        output_key_arn=output.get("KmsKeyId"),
        success_topic_arn=notification.get("SuccessTopic"),
        error_topic_arn=notification.get("ErrorTopic"),
        concurrency=queue.get("ClientConfig", {}).get("MaxConcurrentInvocationsPerInstance"),
    )


def _settings(*, concurrency: int | None, **others: str | None) -> dict[str, Any]:
    named: dict[str, Any] = {f"{_SECTION}.{name}": value for name, value in others.items()}
    named[f"{_SECTION}.max_concurrent_invocations_per_instance"] = concurrency
    return {name: value for name, value in named.items() if value is not None}
