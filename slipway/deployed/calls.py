"""The calls that describe an endpoint with its configuration, models, scaling and alarms."""

from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError

from slipway.access import paged
from slipway.planning.described_alarms import watches

_SCALING_ITEMS: Mapping[str, str] = {
    "describe_scalable_targets": "ScalableTargets",
    "describe_scaling_policies": "ScalingPolicies",
    "describe_scheduled_actions": "ScheduledActions",
}


def _found(describe: Any, **name: str) -> dict[str, Any] | None:
    """Calls a Describe operation; None where SageMaker does not know the name."""
    try:
        answer: dict[str, Any] = describe(**name)
    except ClientError as error:
        # SageMaker has no error code of its own for it.
        missing = error.response["Error"]["Message"].startswith("Could not find")
        if error.response["Error"]["Code"] == "ValidationException" and missing:
            return None
        raise
    return answer


def described_config(sagemaker: Any, name: str) -> dict[str, Any] | None:
    return _found(sagemaker.describe_endpoint_config, EndpointConfigName=name)


def described_model(sagemaker: Any, name: str) -> dict[str, Any] | None:
    return _found(sagemaker.describe_model, ModelName=name)


def described_component(sagemaker: Any, name: str) -> dict[str, Any] | None:
    return _found(sagemaker.describe_inference_component, InferenceComponentName=name)


def describe_endpoint(sagemaker: Any, name: str) -> dict[str, Any] | None:
    return _found(sagemaker.describe_endpoint, EndpointName=name)


def component_names(sagemaker: Any, endpoint_name: str) -> list[str]:
    listed = paged(
        sagemaker,
        "list_inference_components",
        "InferenceComponents",
        EndpointNameEquals=endpoint_name,
    )
    return [each["InferenceComponentName"] for each in listed]


def scaling_items(autoscaling: Any, operation: str, **arguments: Any) -> list[dict[str, Any]]:
    """Returns what Application Auto Scaling has for SageMaker: targets, policies or actions.

    An empty list of ResourceIds means none: to AWS it would mean every target of the account.
    """
    if arguments.get("ResourceIds") == []:
        return []
    return list(
        paged(
            autoscaling,
            operation,
            _SCALING_ITEMS[operation],
            ServiceNamespace="sagemaker",
            **arguments,
        )
    )


def endpoint_alarms(cloudwatch: Any, endpoint_name: str) -> Iterator[dict[str, Any]]:
    """Yields DescribeAlarms' metric alarms that watch an endpoint.

    Its name is that of the stack, too.
    """
    # CloudFormation begins an alarm's name with the stack's.
    prefix = f"{endpoint_name}-"
    for alarm in paged(cloudwatch, "describe_alarms", "MetricAlarms", AlarmNamePrefix=prefix):
        # Another endpoint's name may begin with this one's.
        if watches(alarm, endpoint_name):
            yield alarm
