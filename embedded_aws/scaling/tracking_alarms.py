"""The alarms that Application Auto Scaling makes for a target tracking policy.

It makes two: one above the target for three periods, and one more than ten percent below it for
fifteen minutes. Users quote them, for example in https://github.com/aws/containers-roadmap/issues/121
and, for the metrics with a period of ten seconds, in https://github.com/huggingface/skills,
hf-cloud-sagemaker (both read 2026-11-24).
"""

import re
from collections.abc import Mapping
from typing import Any

from moto.applicationautoscaling.exceptions import AWSValidationException
from moto.cloudwatch.models import cloudwatch_backends
from moto.moto_api._internal import mock_random

from slipway.embedded_aws.monitoring.evaluation import State

_HIGH_PERIODS = 3
_LOW_SECONDS = 900
_LOW_SHARE = 0.9
_VARIANT = re.compile(r"endpoint/(?P<EndpointName>[^/]+)/variant/(?P<VariantName>[^/]+)")
_COMPONENT = re.compile(r"inference-component/(?P<InferenceComponentName>[^/]+)")
# Predefined metric -> its resource, CloudWatch metric, statistic, period in seconds:
# https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-add-code-define.html
_PREDEFINED = {
    "SageMakerVariantInvocationsPerInstance": (_VARIANT, "InvocationsPerInstance", "Sum", 60),
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        _VARIANT,
        "ConcurrentRequestsPerModel",
        "Maximum",
        10,
    ),
    "SageMakerInferenceComponentInvocationsPerCopy": (_COMPONENT, "InvocationsPerCopy", "Sum", 60),
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        _COMPONENT,
        "ConcurrentRequestsPerCopy",
        "Maximum",
        10,
    ),
}


def make_tracking_alarms(policy: Any) -> None:
    """Moto deletes them with the policy. Raises `AWSValidationException` for other metrics."""
    configuration = policy.target_tracking_scaling_policy_configuration
    metric = _metric(policy.resource_id, configuration)
    target = configuration["TargetValue"]
    sides = [("AlarmHigh", "GreaterThanThreshold", target, _HIGH_PERIODS)]
    if not configuration.get("DisableScaleIn"):
        low_periods = _LOW_SECONDS // metric["period"]
        sides.append(("AlarmLow", "LessThanThreshold", target * _LOW_SHARE, low_periods))
    backend = cloudwatch_backends[policy.account_id][policy.region_name]
    for side, operator, threshold, periods in sides:
        alarm = backend.put_metric_alarm(
            name=f"TargetTracking-{policy.resource_id}-{side}-{mock_random.uuid4()}",
            description="DO NOT EDIT OR DELETE. For TargetTrackingScaling policy "
            f"{policy.policy_arn}.",
            comparison_operator=operator,
            evaluation_periods=periods,
            threshold=threshold,
            alarm_actions=[policy.policy_arn],
            metric_data_queries=[],
            **metric,
        )
        alarm.state_value = State.INSUFFICIENT_DATA.value
        policy.alarms.append(alarm)


def _metric(resource_id: str, configuration: Mapping[str, Any]) -> dict[str, Any]:
    predefined = configuration.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    custom = configuration.get("CustomizedMetricSpecification", {})
    if predefined in _PREDEFINED:
        resource, name, statistic, period_seconds = _PREDEFINED[predefined]
        match = resource.fullmatch(resource_id)
        if match is None:
            # AWS's words are not public.
            raise AWSValidationException(
                f"{predefined} is not a metric of the resource {resource_id}."
            )
        return {
            "namespace": "AWS/SageMaker",
            "metric_name": name,
            "dimensions": [
                {"Name": key, "Value": value} for key, value in match.groupdict().items()
            ],
            "statistic": statistic,
            "period": period_seconds,
        }
    if "MetricName" not in custom or "Metrics" in custom:
        raise AWSValidationException(
            f"The embedded AWS tracks {', '.join(_PREDEFINED)} and a single customized metric only."
        )
    return {
        "namespace": custom["Namespace"],
        "metric_name": custom["MetricName"],
        "dimensions": custom.get("Dimensions", []),
        "statistic": custom["Statistic"],
        "unit": custom.get("Unit"),
        "period": 60,
    }
