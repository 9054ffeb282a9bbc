"""Schedule expressions of Application Auto Scaling: `cron(...)`, `rate(...)` and `at(...)`.

Sources, read 2026-11-24:

- The grammar is EventBridge's:
  https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-cron-expressions.html
- Time zones apply to `cron` and `at`, and follow daylight saving time:
  https://docs.aws.amazon.com/autoscaling/application/userguide/scheduled-scaling-policy-overview.html
- A time that the clock skips in spring has no run, and a time that comes twice in autumn has one.
  AWS documents this for EventBridge Scheduler only:
  https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html

Time zones are dateutil's own, so that the machine's database has no effect.
"""

import calendar
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import cache
from typing import Any

from dateutil import tz, zoneinfo

_YEARS = (1970, 2199)
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_UNIT_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
_RATE = re.compile(r"(\d+) (minute|hour|day)(s?)")
_AT_FORMAT = "%Y-%m-%dT%H:%M:%S"
# 29 February is never more than eight years away.
_LONGEST_SEARCH_DAYS = 8 * 366


class ScheduleError(ValueError):
    """An expression or time zone that Application Auto Scaling does not take."""


class Schedule(ABC):
    @abstractmethod
    def next_after(self, seconds: float, created_seconds: float) -> float | None:
        """Returns the first time after a given time, in seconds since the epoch.

        Rates count from `created_seconds`, when the action was put. None if there is none in the
        next eight years.
        """


def parse_schedule(expression: str, time_zone: str = "UTC") -> Schedule:
    """Returns the schedule of an expression in a time zone; raises `ScheduleError` as AWS would."""
    kind, _, rest = expression.partition("(")
    inside = rest.removesuffix(")")
    zone = zone_of(time_zone)
    if kind == "rate":
        return _rate(inside)
    if kind == "at":
        try:
            return _At(datetime.strptime(inside, _AT_FORMAT), zone)
        except ValueError:
            raise ScheduleError(
                f"{inside!r} is not a time of the form yyyy-mm-ddThh:mm:ss"
            ) from None
    if kind != "cron":
        raise ScheduleError(f"{expression!r} is neither cron(...), rate(...) nor at(...)")
    return _cron(inside, zone)


@cache
def zone_of(name: str) -> tzinfo:
    """Returns the time zone of an IANA name; raises `ScheduleError` if there is none."""
    found: Any = UTC if name == "UTC" else zoneinfo.get_zonefile_instance().get(name)
    if found is None:
        raise ScheduleError(f"there is no time zone {name!r}")
    zone: tzinfo = found
    return zone


@dataclass(frozen=True)
class _Rate(Schedule):
    period_seconds: int

    def next_after(self, seconds: float, created_seconds: float) -> float | None:
        passed = max(seconds - created_seconds, 0.0) // self.period_seconds
        return created_seconds + (passed + 1) * self.period_seconds


@dataclass(frozen=True)
class _At(Schedule):
    moment: datetime
    zone: tzinfo

    def next_after(self, seconds: float, created_seconds: float) -> float | None:  # noqa: ARG002
        found = _instant(self.moment, self.zone)
        return found if found is not None and found > seconds else None


@dataclass(frozen=True)
class _Cron(Schedule):
    minutes: frozenset[int]
    hours: frozenset[int]
    months: frozenset[int]
    years: frozenset[int]
    days: "_Days"
    zone: tzinfo

    def next_after(self, seconds: float, created_seconds: float) -> float | None:  # noqa: ARG002
        # A day earlier, because the local date of an instant may differ from its date in UTC.
        first = datetime.fromtimestamp(seconds, UTC).date() - timedelta(days=1)
        for offset in range(_LONGEST_SEARCH_DAYS):
            day = first + timedelta(days=offset)
            if day.year not in self.years or day.month not in self.months or day not in self.days:
                continue
            found = [instant for instant in self._instants(day) if instant > seconds]
            if found:
                return min(found)
        return None

    def _instants(self, day: date) -> Iterator[float]:
        for hour in self.hours:
            for minute in self.minutes:
                moment = datetime(day.year, day.month, day.day, hour, minute)
                instant = _instant(moment, self.zone)
                if instant is not None:
                    yield instant


def _instant(moment: datetime, zone: tzinfo) -> float | None:
    """Returns the first occurrence of a local time in epoch seconds; None if the clocks skip it."""
    aware = moment.replace(tzinfo=zone)
    return aware.timestamp() if tz.datetime_exists(aware) else None


@dataclass(frozen=True)
class _Days:
    """The days of a cron expression: by their number in the month, or by their weekday."""

    numbers: frozenset[int] | None = None
    weekdays: frozenset[int] | None = None
    is_last: bool = False
    nearest_weekday_to: int | None = None
    occurrence: int | None = None

    def __contains__(self, day: date) -> bool:
        length = calendar.monthrange(day.year, day.month)[1]
        if self.weekdays is not None:
            # Sunday is 1 in the expression and 7 for Python.
            if day.isoweekday() % 7 + 1 not in self.weekdays:
                return False
            if self.is_last:
                return day.day > length - 7
            return self.occurrence is None or (day.day - 1) // 7 + 1 == self.occurrence
        if self.is_last:
            return day.day == length
        if self.nearest_weekday_to is not None:
            return day == _nearest_weekday(day.year, day.month, self.nearest_weekday_to)
        return self.numbers is not None and day.day in self.numbers


def _nearest_weekday(year: int, month: int, number: int) -> date | None:
    length = calendar.monthrange(year, month)[1]
    if number > length:
        return None
    wanted = date(year, month, number)
    for offset in (0, -1, 1, -2, 2):
        near = wanted + timedelta(days=offset)
        if near.month == month and near.isoweekday() < 6:
            return near
    return None


def _rate(inside: str) -> _Rate:
    match = _RATE.fullmatch(inside)
    if match is None or match[1].startswith("0"):
        raise ScheduleError(f"{inside!r} is not a rate such as `1 hour` or `5 minutes`")
    number, plural = int(match[1]), match[3] == "s"
    if plural == (number == 1):
        raise ScheduleError(f"{inside!r} needs the unit `{match[2]}{'' if number == 1 else 's'}`")
    return _Rate(number * _UNIT_SECONDS[match[2]])


def _cron(inside: str, zone: tzinfo) -> _Cron:
    fields = inside.split()
    if len(fields) != 6:
        raise ScheduleError(
            f"cron({inside}) has {len(fields)} fields, and needs 6: minutes, hours, day of the "
            "month, month, day of the week, year"
        )
    minutes, hours, month_days, months, weekdays, years = fields
    if (month_days == "?") == (weekdays == "?"):
        raise ScheduleError(
            f"cron({inside}) needs `?` as its day of the month or as its day of the week, "
            "and not as both"
        )
    return _Cron(
        minutes=_values(minutes, "minutes", 0, 59),
        hours=_values(hours, "hours", 0, 23),
        months=_values(months, "month", 1, 12, _MONTHS),
        years=_values(years, "year", *_YEARS),
        days=_days_of_month(month_days) if weekdays == "?" else _days_of_week(weekdays),
        zone=zone,
    )


def _days_of_month(text: str) -> _Days:
    if text == "L":
        return _Days(is_last=True)
    if text.endswith("W"):
        (number,) = _values(text.removesuffix("W"), "day of the month", 1, 31, single=True)
        return _Days(nearest_weekday_to=number)
    return _Days(numbers=_values(text, "day of the month", 1, 31))


def _days_of_week(text: str) -> _Days:
    noun = "day of the week"
    if text == "L":
        return _Days(weekdays=frozenset({7}))
    if text.endswith("L"):
        day = _values(text.removesuffix("L"), noun, 1, 7, _WEEKDAYS, single=True)
        return _Days(weekdays=day, is_last=True)
    if "#" in text:
        name, _, occurrence = text.partition("#")
        day = _values(name, noun, 1, 7, _WEEKDAYS, single=True)
        (number,) = _values(occurrence, "occurrence of the day", 1, 5, single=True)
        return _Days(weekdays=day, occurrence=number)
    return _Days(weekdays=_values(text, noun, 1, 7, _WEEKDAYS))


def _values(
    text: str, noun: str, low: int, high: int, names: tuple[str, ...] = (), *, single: bool = False
) -> frozenset[int]:
    """Returns the values of a field: numbers or names, ranges, steps and lists of these."""
    found: set[int] = set()
    for part in text.split(","):
        span, slash, step = part.partition("/")
        begin, dash, end = span.partition("-")
        if span == "*":
            first, last = low, high
        else:
            first = _number(begin, text, noun, low, high, names)
            last = _number(end, text, noun, low, high, names) if dash else first
            if slash and not dash:
                last = high
        width = _number(step, text, noun, 1, high, ()) if slash else 1
        # A range such as FRI-MON goes over the end.
        if first <= last:
            found.update(range(first, last + 1, width))
        else:
            count = high - low + 1
            steps = range(0, last - first + count + 1, width)
            found.update(low + (first - low + offset) % count for offset in steps)
    if single and len(found) != 1:
        raise ScheduleError(f"{text!r} is not one {noun}")
    return frozenset(found)


def _number(text: str, whole: str, noun: str, low: int, high: int, names: tuple[str, ...]) -> int:
    if text.upper() in names:
        return names.index(text.upper()) + low
    if not text.isdecimal() or not low <= int(text) <= high:
        named = f", or {names[0]} to {names[-1]}" if names else ""
        raise ScheduleError(f"{whole!r} is no {noun}: use {low} to {high}{named}")
    return int(text)
