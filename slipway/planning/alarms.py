"""The alarms of a deployment, which its plan has as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.config.alarm_kinds import AlarmKind
from slipway.config.sections.alarms import ALARM_KINDS, Alarms
from slipway.planning.autoscaling import AutoscalingPlan
from slipway.planning.component import ComponentPlan


@dataclass(frozen=True)
class AlarmPlan:
    """The alarms of each variant.

    Args:
        thresholds: in the units of their metrics, by names that have the unit. An alarm without
            a threshold has no entry.
        evaluation_periods_minutes: minutes in a row above the threshold that raise an alarm.
        at_max_capacity: instances of a fleet at its maximum, or copies of a component; None
            without the alarm.
    """

    thresholds: Mapping[str, float]
    evaluation_periods_minutes: int
    at_max_capacity: int | None = None

    @property
    def count(self) -> int:
        """Returns the number of alarms of a variant."""
        return len(self.thresholds) + (self.at_max_capacity is not None)

    def metric_threshold(self, kind: AlarmKind, gpu_count: int) -> float | None:
        """Returns the threshold of a variant's alarm in its metric's unit; None without the alarm.

        Args:
            kind: the alarm. If its metric adds up over the GPUs, so does the threshold.
            gpu_count: GPUs of one instance of the variant.
        """
        threshold = self.thresholds.get(kind.threshold_name)
        if threshold is None or not kind.watch.gpu_part:
            return threshold
        return threshold * gpu_count

    def as_json(self) -> dict[str, Any]:
        """Returns every threshold, with None for an alarm that the model does not have."""
        names = [kind.threshold_name for kind in ALARM_KINDS.values()]
        return {
            **{name: self.thresholds.get(name) for name in names},
            "evaluation_periods_minutes": self.evaluation_periods_minutes,
            "at_max_capacity": self.at_max_capacity,
        }


def alarm_plan(
    alarms: Alarms, scaling: AutoscalingPlan | None, component: ComponentPlan | None
) -> AlarmPlan:
    """Returns the alarms of each variant.

    Args:
        alarms: the config's section.
        scaling: of every variant; None for a fixed count.
        component: the inference component; None without one.
    """
    thresholds = {
        kind.threshold_name: threshold * kind.metric_units_per_field_unit
        for kind in ALARM_KINDS.values()
        if (threshold := alarms.threshold(kind)) is not None
    }
    at_maximum = None
    if alarms.at_max_capacity and component is not None:
        at_maximum = component.alarming_copies
    elif alarms.at_max_capacity and scaling is not None:
        at_maximum = scaling.alarming_count
    return AlarmPlan(thresholds, alarms.evaluation_periods_minutes, at_maximum)
