"""Step policies and the alarms that carry them out, as `autoscaling.steps` has them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from slipway.importing.endpoint.described import Raw
from slipway.planning.asynchronous import BACKLOG_WITHOUT_CAPACITY

STEP_SCALING: Final = "StepScaling"
_CONFIGURATION: Final = "StepScalingPolicyConfiguration"
_LOADS: Mapping[str, str] = {
    "target_invocations_per_instance_per_minute": "InvocationsPerInstance",
    "target_concurrent_requests_per_instance": "ConcurrentRequestsPerModel",
    "target_gpu_utilization_percent": "GPUUtilization",
    "target_backlog_per_instance": "ApproximateBacklogSizePerInstance",
}
"""The metric that a field's target is a value of."""


def steps_of(
    policy: Raw, alarms: Sequence[Raw], load: Mapping[str, Any], gpu_count: int
) -> list[dict[str, Any]] | None:
    """Returns the steps of a policy; None if `autoscaling.steps` cannot say them.

    The section says steps that add instances, by the metric of the target, after one minute.

    Args:
        policy: a step policy.
        alarms: of the endpoint.
        load: the fields that target tracking told.
        gpu_count: GPUs of an instance, over which their metric adds up.
    """
    field = next((name for name in _LOADS if name in load), None)
    alarm = _alarm(policy, alarms)
    if field is None or alarm is None or alarm.get("MetricName") != _LOADS[field]:
        return None
    if (alarm["EvaluationPeriods"], alarm["Period"]) != (1, 60) or "steps" in load:
        return None
    configuration = policy[_CONFIGURATION]
    if configuration.get("AdjustmentType") != "ChangeInCapacity":
        return None
    target = load[field] * (gpu_count if field == "target_gpu_utilization_percent" else 1)
    steps = [
        {
            "from_times_target": whole(
                round((alarm["Threshold"] + each.get("MetricIntervalLowerBound", 0)) / target, 6)
            ),
            "add_instances": each["ScalingAdjustment"],
        }
        for each in configuration["StepAdjustments"]
    ]
    expressible = all(
        step["from_times_target"] > 1 and step["add_instances"] >= 1 for step in steps
    )
    return steps if expressible else None


def wakes(policy: Raw, alarms: Sequence[Raw]) -> bool:
    """Returns whether a step policy starts the first instance of an asynchronous endpoint.

    Slipway makes such a policy for every fleet that may have no instances.
    """
    alarm = _alarm(policy, alarms)
    return alarm is not None and alarm.get("MetricName") == BACKLOG_WITHOUT_CAPACITY


def whole(value: float) -> float | int:
    """Returns a number as people write it: 600, and not 600.0."""
    return int(value) if value == int(value) else value


def _alarm(policy: Raw, alarms: Sequence[Raw]) -> Raw | None:
    """Returns the alarm that carries a policy out."""
    arn = policy.get("PolicyARN")
    return next((each for each in alarms if arn in (each.get("AlarmActions") or ())), None)
