"""The alarm of a fleet at its maximum, beside the same alarm for one instance or copy less."""

import re
from typing import Any

import pytest

from tests.support.slipway_stack import SlipwayStack
from tests.support.waiting import eventually

_LOGICAL_ID = "AlarmsAtMaxCapacity74DC2C5D"
_ONE_LESS = "one-less"
_MEMBERS = ("ComparisonOperator", "EvaluationPeriods", "Metrics", "TreatMissingData")


class CapacityAlarm:
    def __init__(self, stack: SlipwayStack, name: str) -> None:
        self._cloudwatch = stack.stacks.client("cloudwatch")
        self._name = stack.stacks.physical_id(name, _LOGICAL_ID)
        described = self.described()
        self._cloudwatch.put_metric_alarm(
            AlarmName=_ONE_LESS,
            Threshold=described["Threshold"] - 1,
            **{member: described[member] for member in _MEMBERS},
        )

    def described(self) -> dict[str, Any]:
        (alarm,) = self._cloudwatch.describe_alarms(AlarmNames=[self._name])["MetricAlarms"]
        return dict(alarm)

    def stays_ok_for_one_less(self) -> None:
        """Waits until the other alarm is raised: then the minutes were evaluated."""
        eventually(lambda: self._is_raised(_ONE_LESS), seconds=10)
        assert self.described()["StateValue"] == "OK"

    def is_raised_by(self, count: int) -> None:
        eventually(lambda: self._is_raised(self._name), seconds=10)
        reason = self.described()["StateReason"]
        (compared,) = re.findall(r"\[([0-9.]+) \(", reason)
        assert float(compared) == pytest.approx(count, abs=0.1), reason

    def ends(self) -> None:
        eventually(lambda: not self._is_raised(self._name), seconds=10)

    def _is_raised(self, name: str) -> bool:
        found = self._cloudwatch.describe_alarms(AlarmNames=[name], StateValue="ALARM")
        return bool(found["MetricAlarms"])
