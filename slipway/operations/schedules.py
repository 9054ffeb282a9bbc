"""Scheduled actions of a scalable target, in the words in which they are compared with a plan."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Schedule

_NAMESPACE = "sagemaker"
_Bounds: TypeAlias = tuple[int | None, int | None]


@dataclass(frozen=True)
class LiveSchedules:
    """The scheduled actions that a scalable target has.

    Args:
        bounds: lower and upper bound of each.
        texts: one for each, sorted; None without any.
    """

    bounds: tuple[_Bounds, ...]
    texts: list[str] | None

    def bounds_of(self, target: Mapping[str, Any], planned: tuple[int, int]) -> tuple[int, int]:
        """Returns a target's bounds, or the planned ones if a scheduled action has set its bounds.

        The next scheduled action changes them again.

        Args:
            target: of DescribeScalableTargets.
            planned: lower and upper bound of the plan.
        """
        bounds = (target["MinCapacity"], target["MaxCapacity"])
        return planned if bounds in self.bounds else bounds


def planned_schedules(
    schedules: Sequence[Schedule] | Sequence[CopySchedule],
) -> list[str] | None:
    """Returns a text for each schedule of a config, sorted; None without any."""
    texts = (_text(each.name, each.at, each.zone_of_expression, each.bounds) for each in schedules)
    return sorted(texts) or None


def live_schedules(autoscaling: Any, resource_id: str) -> LiveSchedules:
    """Returns the scheduled actions of a scalable target.

    Args:
        autoscaling: boto3's client of Application Auto Scaling.
        resource_id: ResourceId of the target.
    """
    actions = autoscaling.describe_scheduled_actions(
        ServiceNamespace=_NAMESPACE, ResourceId=resource_id
    )["ScheduledActions"]
    bounds = [_bounds(action) for action in actions]
    texts = (
        _text(action["ScheduledActionName"], action["Schedule"], action.get("Timezone"), of)
        for action, of in zip(actions, bounds, strict=True)
    )
    return LiveSchedules(tuple(bounds), sorted(texts) or None)


def _text(name: str, expression: str, time_zone: str | None, bounds: _Bounds) -> str:
    low, high = bounds
    return f"{name} ({low} to {high} from {expression} in {time_zone or 'UTC'})"


def _bounds(action: Mapping[str, Any]) -> _Bounds:
    bounds = action["ScalableTargetAction"]
    # Somebody else's action may leave one of them as it is.
    return bounds.get("MinCapacity"), bounds.get("MaxCapacity")
