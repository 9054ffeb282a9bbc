"""Scaling policies, scheduled actions and alarms, by the names of their fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from slipway.config.alarm_kinds import AlarmKind
from slipway.config.sections.alarms import Alarms
from slipway.deployed.answers import Answer
from slipway.deployed.described import Raw
from slipway.deployed.fields import Paths, whole
from slipway.planning.asynchronous import BACKLOG_PER_INSTANCE
from slipway.planning.component import COPY_TARGETS

TRACKING: Final = "TargetTrackingScalingPolicyConfiguration"
STEP_SCALING: Final = "StepScaling"
STEPS: Final = "StepScalingPolicyConfiguration"
GPU_TARGET: Final = "target_gpu_utilization_percent"

INSTANCE_TARGETS: Final[Mapping[str, str]] = {
    "SageMakerVariantInvocationsPerInstance": "target_invocations_per_instance_per_minute",
    "SageMakerVariantConcurrentRequestsPerModelHighResolution": (
        "target_concurrent_requests_per_instance"
    ),
    # These two have no predefined metric.
    BACKLOG_PER_INSTANCE: "target_backlog_per_instance",
    "GPUUtilization": GPU_TARGET,
}
"""By the metric of target tracking, the field of `autoscaling` to hold."""

PAUSES: Final[Paths] = {
    "scale_in_cooldown_seconds": (TRACKING, "ScaleInCooldown"),
    "scale_out_cooldown_seconds": (TRACKING, "ScaleOutCooldown"),
}


def target_field(policy: Raw) -> str | None:
    """Returns the field that the target of a policy is; None for any other policy."""
    tracking = policy.get(TRACKING) or {}
    predefined = (tracking.get("PredefinedMetricSpecification") or {}).get("PredefinedMetricType")
    if predefined is not None:
        return {**INSTANCE_TARGETS, **COPY_TARGETS}.get(predefined)
    metric = (tracking.get("CustomizedMetricSpecification") or {}).get("MetricName")
    return INSTANCE_TARGETS.get(str(metric))


def take_target(policy: Answer, field: str, gpu_count: int = 1) -> dict[str, Any]:
    """Takes target and pauses out of a policy of target tracking with that `target_field`.

    Metrics of GPUs add up over the GPUs of an instance.
    """
    if policy.take(TRACKING, "PredefinedMetricSpecification", "PredefinedMetricType") is None:
        policy.take(TRACKING, "CustomizedMetricSpecification")
    value = policy.take(TRACKING, "TargetValue") / (gpu_count if field == GPU_TARGET else 1)
    return {field: whole(value), **policy.fields(PAUSES)}


def take_schedule(action: Answer, bounds: tuple[str, str]) -> dict[str, Any]:
    """Takes an entry of `schedules` out of a scheduled action; somebody else's may lack a bound."""
    low, high = bounds
    return action.fields(
        {
            "name": ("ScheduledActionName",),
            "at": ("Schedule",),
            "time_zone": ("Timezone",),
            low: ("ScalableTargetAction", "MinCapacity"),
            high: ("ScalableTargetAction", "MaxCapacity"),
        }
    )


def alarm_of(policy: Raw, alarms: Sequence[Raw]) -> Raw | None:
    arn = policy.get("PolicyARN")
    return next((each for each in alarms if arn in (each.get("AlarmActions") or ())), None)


def step_loads(policy: Raw, alarm: Raw) -> list[tuple[int, float]]:
    """Returns the steps of a policy: added instances, and the load from which they are added.

    The bounds of the steps count from the threshold of the alarm that carries the policy out.
    """
    return [
        (step["ScalingAdjustment"], alarm["Threshold"] + step.get("MetricIntervalLowerBound", 0))
        for step in policy[STEPS]["StepAdjustments"]
    ]


PERIOD_SECONDS: Final = 60
"""Of Slipway's alarms."""


def alarm_fields(alarm: Raw, kind: AlarmKind, gpu_count: int) -> dict[str, Any]:
    """Returns the threshold of an alarm in the unit of its field, and its minutes.

    Metrics of GPUs add up over the GPUs of an instance.
    """
    value: float = alarm["Threshold"] / kind.metric_units_per_field_unit
    if kind.watch.gpu_part:
        value /= max(1, gpu_count)
    is_whole = Alarms.model_fields[kind.field].annotation in (int, int | None)
    return {
        kind.field: round(value) if is_whole or value == int(value) else value,
        **minutes_field(alarm),
    }


def minutes_field(alarm: Raw) -> dict[str, Any]:
    minutes = alarm["EvaluationPeriods"] * period_seconds(alarm) // PERIOD_SECONDS
    return {"evaluation_periods_minutes": max(1, minutes)}


def period_seconds(alarm: Raw) -> int:
    periods = [query["MetricStat"]["Period"] for query in metric_queries(alarm)]
    return int(alarm.get("Period") or max(periods, default=PERIOD_SECONDS))


def metric_queries(alarm: Raw) -> Iterator[Raw]:
    yield from (query for query in alarm.get("Metrics") or () if "MetricStat" in query)
