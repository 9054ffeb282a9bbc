"""Changes the state of moto's alarms, and carries out the actions of each change.

The evaluator and the API change states from different threads. Both use this module, under one
lock, so that each change happens once and has one notification.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any, NamedTuple

from slipway.embedded_aws.monitoring.evaluation import State
from slipway.embedded_aws.monitoring.notifications import Notifier, notification_of

_UNCHECKED = "Unchecked: Initial alarm creation"


class AlarmStates:
    def __init__(self, notifier: Notifier, clock: Callable[[], float]) -> None:
        self._notifier = notifier
        self._clock = clock
        self._lock = threading.Lock()

    @contextmanager
    def put(self, alarms: dict[str, Any], name: str) -> Iterator[None]:
        """Gives the alarm that is put inside the block the state CloudWatch would give it.

        moto sets OK each time. In CloudWatch, a new alarm has insufficient data, and an alarm that
        is put again keeps its state.
        """
        with self._lock:
            before = alarms.get(name)
            yield
            alarm = alarms[name]
            if before is None:
                now = self.now()
                alarm.state_value = State.INSUFFICIENT_DATA.value
                alarm.state_reason = _UNCHECKED
                alarm.state_reason_data = None
                alarm.state_updated_timestamp = now
                alarm.state_transitioned_timestamp = now
                return
            for field in (
                "state_value",
                "state_reason",
                "state_reason_data",
                "state_updated_timestamp",
                "state_transitioned_timestamp",
                "history",
            ):
                if hasattr(before, field):
                    setattr(alarm, field, getattr(before, field))

    @contextmanager
    def set_by_user(self, alarms: dict[str, Any], name: str) -> Iterator[None]:
        """Carries out the actions of a SetAlarmState that happens inside the block."""
        notification = None
        with self._lock:
            before = alarms[name].state_value if name in alarms else None
            yield
            alarm = alarms.get(name)
            if alarm is not None and before is not None:
                alarm.state_updated_timestamp = self.now()
                if alarm.state_value != before:
                    alarm.state_transitioned_timestamp = alarm.state_updated_timestamp
                    notification = notification_of(alarm, before)
        self._notifier.send(notification)

    def change(
        self,
        alarms: Mapping[str, Any],
        alarm: Any,
        decide: Callable[[str], tuple[State, str, str | None] | None],
    ) -> None:
        """Changes an alarm's state, unless it was deleted or put again in the meantime.

        `decide` maps the current state to the new one with its reason and reason data, or to None
        to leave everything unchanged.
        """
        with self._lock:
            current: Any = alarms.get(alarm.name)
            if current is not alarm:
                return
            before = alarm.state_value
            decided = decide(before)
            if decided is None:
                return
            state, reason, reason_data = decided
            alarm.update_state(reason, reason_data, state.value)
            alarm.state_updated_timestamp = self.now()
            if state == before:
                return
            alarm.state_transitioned_timestamp = alarm.state_updated_timestamp
            notification = notification_of(alarm, before)
        self._notifier.send(notification)

    def now(self) -> datetime:
        """Returns the account's time in UTC, without a time zone, as moto keeps it."""
        return datetime.fromtimestamp(self._clock(), UTC).replace(tzinfo=None)


class _Stay(NamedTuple):
    """A time in one state: its beginning, and the reason for it."""

    state: str
    reason: str
    reason_data: str | None
    since: datetime


def state_updates(alarm: Any) -> Iterator[dict[str, Any]]:
    """Yields the AlarmHistoryItem of each change of state, the latest first.

    moto keeps the states that an alarm left, each with the time of its beginning. The present state
    is the last of them.
    """
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
