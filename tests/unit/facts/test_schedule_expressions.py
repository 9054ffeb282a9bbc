"""The times of schedule expressions, across changes to and from daylight saving time."""

from datetime import UTC, datetime
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.facts.schedule_expressions import ScheduleError, parse_schedule

ZURICH = "Europe/Zurich"


def times(expression: str, zone: str, after: str, count: int = 3) -> list[str]:
    """Returns the first times after a time, in UTC."""
    schedule = parse_schedule(expression, zone)
    seconds = datetime.fromisoformat(after).timestamp()
    found = []
    for _ in range(count):
        following = schedule.next_after(seconds, 0.0)
        if following is None:
            break
        seconds = following
        found.append(datetime.fromtimestamp(seconds, UTC).isoformat().removesuffix(":00+00:00"))
    return found


# In 2027 Zurich's clocks skip 02:00 to 03:00 on 28 March, and repeat that hour on 31 October.
CASES = {
    "seven o'clock stays seven o'clock in spring": (
        "cron(0 7 ? * * *)", ZURICH, "2027-03-26T12:00+01:00",
        ["2027-03-27T06:00", "2027-03-28T05:00", "2027-03-29T05:00"],
    ),
    "seven o'clock stays seven o'clock in autumn": (
        "cron(0 7 ? * * *)", ZURICH, "2027-10-29T12:00+02:00",
        ["2027-10-30T05:00", "2027-10-31T06:00", "2027-11-01T06:00"],
    ),
    "a time that spring skips has no run": (
        "cron(30 2 ? * * *)", ZURICH, "2027-03-26T12:00+01:00",
        ["2027-03-27T01:30", "2027-03-29T00:30", "2027-03-30T00:30"],
    ),
    "a time that autumn repeats has one run": (
        "cron(30 2 ? * * *)", ZURICH, "2027-10-29T12:00+02:00",
        ["2027-10-30T00:30", "2027-10-31T00:30", "2027-11-01T01:30"],
    ),
    "UTC has no such days": (
        "cron(30 2 ? * * *)", "UTC", "2027-03-26T12:00+00:00",
        ["2027-03-27T02:30", "2027-03-28T02:30", "2027-03-29T02:30"],
    ),
    "weekdays, as the user guide of Application Auto Scaling has them": (
        "cron(0 18 ? * MON-FRI *)", "UTC", "2027-01-01T00:00+00:00",
        ["2027-01-01T18:00", "2027-01-04T18:00", "2027-01-05T18:00"],
    ),
    "every ten minutes": (
        "cron(0/10 * * * ? *)", "UTC", "2027-01-01T00:01+00:00",
        ["2027-01-01T00:10", "2027-01-01T00:20", "2027-01-01T00:30"],
    ),
    "the last day of a month": (
        "cron(0 0 L * ? *)", "UTC", "2027-01-31T12:00+00:00",
        ["2027-02-28T00:00", "2027-03-31T00:00", "2027-04-30T00:00"],
    ),
    "the weekday that is nearest to a day": (
        "cron(0 0 1W * ? *)", "UTC", "2027-07-15T00:00+00:00",
        ["2027-08-02T00:00", "2027-09-01T00:00", "2027-10-01T00:00"],
    ),
    "the last Friday": (
        "cron(0 0 ? * 6L *)", "UTC", "2027-01-01T00:00+00:00",
        ["2027-01-29T00:00", "2027-02-26T00:00", "2027-03-26T00:00"],
    ),
    "the third Friday": (
        "cron(0 0 ? * FRI#3 *)", "UTC", "2027-01-01T00:00+00:00",
        ["2027-01-15T00:00", "2027-02-19T00:00", "2027-03-19T00:00"],
    ),
    "a range over the end of the week": (
        "cron(0 0 ? * FRI-SUN *)", "UTC", "2027-01-01T00:00+00:00",
        ["2027-01-02T00:00", "2027-01-03T00:00", "2027-01-08T00:00"],
    ),
    "leap days": (
        "cron(0 0 29 FEB ? *)", "UTC", "2027-01-01T00:00+00:00",
        ["2028-02-29T00:00", "2032-02-29T00:00", "2036-02-29T00:00"],
    ),
    "years end": ("cron(0 0 1 1 ? 2027-2028)", "UTC", "2027-06-01T00:00+00:00",
                  ["2028-01-01T00:00"]),
    "once": ("at(2027-03-28T03:30:00)", ZURICH, "2027-01-01T00:00+00:00", ["2027-03-28T01:30"]),
    "once, at a time that is skipped": ("at(2027-03-28T02:30:00)", ZURICH,
                                        "2027-01-01T00:00+00:00", []),
    "a rate knows no daylight saving time": (
        "rate(1 day)", ZURICH, "2027-03-26T12:00+00:00",
        ["2027-03-27T00:00", "2027-03-28T00:00", "2027-03-29T00:00"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_times(case):
    expression, zone, after, expected = CASES[case]
    assert times(expression, zone, after) == expected


def test_a_rate_counts_from_the_creation():
    schedule = parse_schedule("rate(5 minutes)")
    assert schedule.next_after(1000.0, 950.0) == 1250.0
    assert schedule.next_after(1250.0, 950.0) == 1550.0


@settings(deadline=None)
@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    zone=st.sampled_from(["UTC", ZURICH, "America/St_Johns", "Australia/Lord_Howe"]),
    begin=st.integers(0, 2_000_000_000),
)
def test_a_daily_time_comes_about_once_a_day(minute, hour, zone, begin):
    schedule = parse_schedule(f"cron({minute} {hour} ? * * *)", zone)
    seconds = float(begin)
    found = []
    for _ in range(4):
        seconds = schedule.next_after(seconds, 0.0)
        found.append(seconds)
    gaps = {round((other - one) / 3600) for one, other in pairwise(found)}
    # 47 to 49 hours when a time is skipped; Samoa and others that skip whole days are not here.
    assert gaps <= {23, 24, 25, 47, 48, 49}


@pytest.mark.parametrize("expression", ["every(1 day)", "cron(0 7 ? * 2,9 *)", "cron(0 7 0 * ? *)",
                                        "cron(0 7 ? * 3#6 *)", "cron(* * 40W * ? *)"])  # fmt: skip
def test_other_expressions_are_refused(expression):
    with pytest.raises(ScheduleError):
        parse_schedule(expression)
