"""The changes of an alarm's state, as DescribeAlarmHistory tells them.

moto keeps the states that an alarm left, each with the time of its beginning. The present state is
the last of them.
"""

import json
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Any, NamedTuple


class _Stay(NamedTuple):
    """A time in one state: its beginning, and the reason for it."""

    state: str
    reason: str
    reason_data: str | None
    since: datetime


def state_updates(alarm: Any) -> Iterator[dict[str, Any]]:
    """Yields the AlarmHistoryItem of each change of state, the latest first."""
    stays = [
        _Stay(state, reason, data, since)
        for kind, reason, data, state, since in alarm.history
        if kind == "StateUpdate"
    ]
    stays.append(
        _Stay(
            alarm.state_value,
            alarm.state_reason,
            alarm.state_reason_data,
            alarm.state_updated_timestamp,
        )
    )
    for old, new in reversed(list(pairwise(stays))):
        if old.state != new.state:
            yield {
                "AlarmName": alarm.name,
                "AlarmType": "MetricAlarm",
                "Timestamp": new.since,
                "HistoryItemType": "StateUpdate",
                "HistorySummary": f"Alarm updated from {old.state} to {new.state}",
                "HistoryData": json.dumps(
                    {"version": "1.0", "oldState": _told(old), "newState": _told(new)}
                ),
            }


def _told(stay: _Stay) -> dict[str, Any]:
    found: dict[str, Any] = {"stateValue": stay.state, "stateReason": stay.reason}
    if stay.reason_data:
        found["stateReasonData"] = json.loads(stay.reason_data)
    return found
