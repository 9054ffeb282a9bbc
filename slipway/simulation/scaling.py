"""How a fleet follows its metric, as AWS documents it, slot after slot.

- Target tracking has two alarms: above the target for three periods, and below 90 % of it for 15
  minutes. Its count is the present one times metric / target, rounded up. Sources as for the
  embedded AWS (`slipway/embedded_aws/scaling`), read 2026-11-24:
  https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html
- A period is ten seconds for concurrent requests, else a minute:
  https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-add-code-define.html
- An endpoint that is being changed takes no other change, so nothing scales while instances start.
- A pause counts from the end of a change, for changes in the same direction alone. AWS lets a
  larger change of target tracking through during the pause: here it waits.
- A minute without requests has no value of invocations, and an alarm of missing values does not
  take instances away. The other metrics are 0 then.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from slipway.facts.schedule_expressions import parse_schedule
from slipway.simulation.traffic import SLOT_SECONDS

_HIGH_PERIODS: Final = 3
_LOW_SECONDS: Final = 900
_LOW_SHARE: Final = 0.9
# CloudWatch reads two periods more where values are missing, in its documented examples.
_EXTRA_PERIODS: Final = 2
_MINUTE: Final = 60


class Follows(Enum):
    INVOCATIONS = "invocations a minute"
    CONCURRENCY = "concurrent requests"
    BACKLOG = "requests in the queue"


@dataclass(frozen=True)
class ScheduledBounds:
    expression: str
    time_zone: str
    bounds: tuple[int, int]


@dataclass(frozen=True)
class Scaling:
    """The policies of one fleet, of instances or of copies.

    `steps` are factors of the target with what they add, in ascending order. With `wakes`, a
    request that finds nothing adds the first one.
    """

    follows: Follows
    target: float
    minimum: int
    maximum: int
    out_pause_seconds: int
    in_pause_seconds: int
    steps: tuple[tuple[float, int], ...] = ()
    schedules: tuple[ScheduledBounds, ...] = ()
    wakes: bool = False
    wake_pause_seconds: int = 300

    @property
    def period_seconds(self) -> int:
        """Returns the period of target tracking's metric."""
        return SLOT_SECONDS if self.follows is Follows.CONCURRENCY else _MINUTE


class Fleet:
    """The number of instances or copies: `serving` take requests, and `wanted` are paid for.

    Without scaling it is fixed. A new one serves `start_seconds` after the decision. Schedules
    count from `begin`, in seconds since the epoch.
    """

    def __init__(
        self, scaling: Scaling | None, count: int, start_seconds: float, begin: float
    ) -> None:
        self._scaling, self._start_seconds, self._begin = scaling, start_seconds, begin
        self.serving = self.wanted = count
        self._minimum, self._maximum = 0, count
        self._ready_at = self._next_schedule = math.inf
        self._changed: dict[tuple[str, bool], float] = {}
        self._slots: list[tuple[float, int, float, float]] = []
        if scaling is None:
            return
        self._minimum, self._maximum = scaling.minimum, scaling.maximum
        periods = _LOW_SECONDS // scaling.period_seconds + _EXTRA_PERIODS
        self._values: deque[float | None] = deque(maxlen=periods)
        self._schedules = [
            (parse_schedule(each.expression, each.time_zone).next_after, each.bounds)
            for each in scaling.schedules
        ]
        self._next_schedule = self._soonest(begin)
        self._fit(0.0)

    def begin_slot(self, at: float) -> None:
        """Carries out what is due: instances that have started, and schedules."""
        if at >= self._ready_at:
            self.serving, self._ready_at = self.wanted, math.inf
            self._changed = {each: max(when, at) for each, when in self._changed.items()}
        while self._begin + at >= self._next_schedule:
            now = self._next_schedule
            for next_after, bounds in self._schedules:
                if next_after(now - 1, self._begin) == now:
                    self._minimum, self._maximum = bounds
            self._next_schedule = self._soonest(now)
        self._fit(at)

    def end_slot(self, at: float, requests: float, in_flight: float, refused: float) -> None:
        """Takes what was measured in a slot, and scales where a period ends.

        Those in flight wait or are computed. Those that are refused want for any instance.
        """
        scaling = self._scaling
        if scaling is None:
            return
        self._slots.append((requests, max(self.serving, 1), in_flight, refused))
        is_minute = at % _MINUTE < SLOT_SECONDS
        if scaling.period_seconds == SLOT_SECONDS:
            self._values.append(in_flight / max(self.serving, 1))
        elif is_minute:
            self._values.append(self._minute_value(scaling.follows))
        wanted = [self._tracked(at)] if is_minute or scaling.period_seconds == SLOT_SECONDS else []
        if is_minute:
            wanted += [self._stepped(at), self._woken(at)]
            self._slots.clear()
        # Where two policies would change the capacity, the larger one counts.
        changes = [each for each in wanted if each is not None]
        if changes and self._ready_at == math.inf:
            count, policy, is_out = max(changes)
            if count != self.wanted:
                self._changed[policy, is_out] = at
                self._set(count, at)

    def _minute_value(self, follows: Follows) -> float | None:
        if follows is Follows.INVOCATIONS:
            total = sum(requests / count for requests, count, _, _ in self._slots)
            return total or None
        values = [in_flight / count for _, count, in_flight, _ in self._slots]
        return sum(values) / len(values)

    def _tracked(self, at: float) -> tuple[int, str, bool] | None:
        scaling = self._scaling
        value = self._values[-1]
        if scaling is None or value is None:
            return None
        known = [each for each in self._values if each is not None]
        needed = _LOW_SECONDS // scaling.period_seconds
        ages = [age for age, each in enumerate(reversed(self._values), 1) if each is not None]
        is_high = len(known) >= _HIGH_PERIODS and min(known[-_HIGH_PERIODS:]) > scaling.target
        is_low = ages[-1] >= needed and max(known[-needed:]) < _LOW_SHARE * scaling.target
        if not is_high and not is_low:
            return None
        count = math.ceil(max(self.wanted, 1) * value / scaling.target - 1e-9)
        pause = scaling.out_pause_seconds if is_high else scaling.in_pause_seconds
        return self._allowed(count, "tracking", at, pause, is_out=is_high)

    def _stepped(self, at: float) -> tuple[int, str, bool] | None:
        scaling = self._scaling
        if scaling is None or not scaling.steps:
            return None
        if scaling.follows is Follows.CONCURRENCY:
            value: float | None = max(each[2] / each[1] for each in self._slots)
        else:
            value = self._values[-1]
        steps = [
            added for factor, added in scaling.steps if (value or 0.0) >= factor * scaling.target
        ]
        if not steps:
            return None
        pause = scaling.out_pause_seconds
        return self._allowed(self.wanted + steps[-1], "steps", at, pause, is_out=True)

    def _woken(self, at: float) -> tuple[int, str, bool] | None:
        scaling = self._scaling
        if scaling is None or not scaling.wakes or self.serving:
            return None
        waiting = self._slots[-1][2] if scaling.follows is Follows.BACKLOG else 0.0
        if waiting + sum(each[3] for each in self._slots) < 1:
            return None
        pause = scaling.wake_pause_seconds
        return self._allowed(self.wanted + 1, "wake", at, pause, is_out=True)

    def _allowed(
        self, count: int, policy: str, at: float, pause: float, *, is_out: bool
    ) -> tuple[int, str, bool] | None:
        count = min(max(count, self._minimum), self._maximum)
        if (count > self.wanted) != is_out or count == self.wanted:
            return None
        last = self._changed.get((policy, is_out))
        return None if last is not None and at - last < pause else (count, policy, is_out)

    def _fit(self, at: float) -> None:
        if self._ready_at == math.inf and self._scaling is not None:
            self._set(min(max(self.wanted, self._minimum), self._maximum), at)

    def _set(self, count: int, at: float) -> None:
        if count > self.serving and self._start_seconds:
            self._ready_at = at + self._start_seconds
        else:
            self.serving = count
        self.wanted = count

    def _soonest(self, after: float) -> float:
        calls: Sequence[Callable[[float, float], float | None]] = [
            next_after for next_after, _ in self._schedules
        ]
        found = [next_after(after, self._begin) for next_after in calls]
        return min((each for each in found if each is not None), default=math.inf)
