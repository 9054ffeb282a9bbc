"""Step policies with their alarms, and scheduled actions, as `steps` and `schedules` have them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from slipway.deployed.answers import Answer
from slipway.deployed.described import Described, Raw
from slipway.deployed.fields import whole
from slipway.deployed.scaling import GPU_TARGET, STEPS, alarm_of, step_loads, take_schedule
from slipway.importing.endpoint.findings import Findings
from slipway.planning.asynchronous import BACKLOG_WITHOUT_CAPACITY

_ABOUT: Final = (
    "ScheduledActionARN", "ServiceNamespace", "ResourceId", "ScalableDimension", "CreationTime",
)  # fmt: skip
_NOT_A_NAME: Final = re.compile(r"[^a-z0-9-]+")
_PAUSE: Final = "scale_out_cooldown_seconds"
# Members that `autoscaling.steps` can say. One value of the metric comes to each alarm, so that its
# aggregation has no effect.
_SAID: Final = {"AdjustmentType", "Cooldown", "MetricAggregationType", "StepAdjustments"}
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

    The section says steps that add instances, by the metric of the target, after one minute, with
    the pause of target tracking.
    """
    field = next((name for name in _LOADS if name in load), None)
    alarm = alarm_of(policy, alarms)
    if field is None or alarm is None or alarm.get("MetricName") != _LOADS[field]:
        return None
    if (alarm["EvaluationPeriods"], alarm["Period"]) != (1, 60) or "steps" in load:
        return None
    configuration = policy[STEPS]
    if not _adds(configuration) or configuration.get("Cooldown") != load.get(_PAUSE):
        return None
    target = load[field] * (gpu_count if field == GPU_TARGET else 1)
    steps = [
        {"from_times_target": whole(round(threshold / target, 6)), "add_instances": added}
        for added, threshold in step_loads(policy, alarm)
    ]
    return steps if all(step["from_times_target"] > 1 for step in steps) else None


def wakes(
    policy: Raw,
    alarms: Sequence[Raw],
    least_count: int,
    metric: str = BACKLOG_WITHOUT_CAPACITY,
) -> bool:
    """Returns whether a step policy starts the first instance, or the first copy.

    Slipway makes such a policy for everything that may scale to zero, and sets its pause.
    `least_count` is that of instances or copies, and `metric` is the alarm's.
    """
    alarm, configuration = alarm_of(policy, alarms), policy[STEPS]
    return (
        least_count == 0
        and alarm is not None
        and alarm.get("MetricName") == metric
        and _adds(configuration)
        and [each["ScalingAdjustment"] for each in configuration["StepAdjustments"]] == [1]
    )


def schedules_of(
    described: Described, target: Raw, fields: tuple[str, str], found: Findings
) -> list[dict[str, Any]]:
    return [_entry(action, target, fields, found) for action in described.actions_of(target)]


def _entry(raw: Raw, target: Raw, fields: tuple[str, str], found: Findings) -> dict[str, Any]:
    action = Answer(raw, _ABOUT)
    entry = take_schedule(action, fields)
    name = str(entry["name"])
    entry["name"] = _NOT_A_NAME.sub("-", name.lower()).strip("-")
    if entry["name"] != name:
        found.change("scheduled action", name, f"{entry['name']} now.")
    for field, source in zip(fields, ("MinCapacity", "MaxCapacity"), strict=True):
        if field not in entry:
            entry[field] = target[source]
            reason = f"{target[source]} now, as it is at present."
            found.change(f"scheduled action {name}: {source}", "unset", reason)
    found.leave_out_rest(action, f"scheduled action {name}: ")
    return entry


def _adds(configuration: Mapping[str, Any]) -> bool:
    """Returns whether a step policy adds instances, each step beginning at another's end."""
    steps = configuration.get("StepAdjustments") or ()
    ends = [each.get("MetricIntervalUpperBound") for each in steps]
    begins = [each.get("MetricIntervalLowerBound") for each in steps]
    return (
        len(steps) > 0
        and configuration.keys() <= _SAID
        and configuration.get("AdjustmentType") == "ChangeInCapacity"
        and ends == [*begins[1:], None]
        and all(each["ScalingAdjustment"] >= 1 for each in steps)
    )
