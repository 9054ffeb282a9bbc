"""How a simulated fleet follows its metric, minute by minute, and the traffic that it has."""

from dataclasses import replace

import pytest

from slipway.errors import UserError
from slipway.simulation.queues import Bounds, Queue, ServiceTimes
from slipway.simulation.scaling import Fleet, Follows, Scaling, ScheduledBounds
from slipway.simulation.traffic import profile, read_trace
from tests.support.projects import refusal

TRACKING = Scaling(Follows.INVOCATIONS, 60.0, 1, 10, 60, 300)
MONDAY = 1_767_571_200  # 2026-01-05 00:00 UTC


def counts(
    scaling: Scaling, minutes: list[float], *, start_seconds: float = 0, count: int = 1
) -> list[int]:
    """Instances in service after each minute with so many requests, each of 10 ms."""
    fleet = Fleet(scaling, count, start_seconds, MONDAY)
    queue = Queue(ServiceTimes(0.01, 0, 1), Bounds(keeps=scaling.follows is Follows.BACKLOG))
    found = []
    for minute, requests in enumerate(minutes):
        for part in range(6):
            at = 60.0 * minute + 10 * part
            fleet.begin_slot(at)
            slot = queue.step(requests / 6, fleet.serving, 10)
            fleet.end_slot(at + 10, requests / 6, slot.in_flight, slot.refused)
        found.append(fleet.serving)
    return found


def test_minutes_above_the_target_add_and_fifteen_below_it_take_away():
    assert counts(TRACKING, [180] * 4 + [30] * 16) == [1, 1, 3, 3] + [3] * 14 + [1, 1]
    # 55 of 60 is not more than ten percent below it.
    assert counts(TRACKING, [55] * 30, count=2)[:16] == [2] * 14 + [1] * 2
    assert counts(replace(TRACKING, minimum=2), [110] * 30, count=2) == [2] * 30
    # Three are wanted after three minutes and serve two minutes later. A minute after that begins
    # the change to ten.
    found = counts(TRACKING, [180] * 3 + [600] * 8, start_seconds=120)
    assert found == [1] * 5 + [3] * 3 + [10] * 3
    assert counts(TRACKING, [300] * 3 + [0] * 40)[-1] == 5
    steps = replace(TRACKING, steps=((2.0, 1), (4.0, 5)))
    assert counts(steps, [130, 60, 60]) == [2, 2, 2]
    assert counts(steps, [250, 60, 60]) == [6, 6, 6]


def test_schedules_set_both_bounds_and_concurrency_is_followed_in_half_a_minute():
    # 600 requests a second of 10 ms are six in flight, of which a fleet of 10 takes its part.
    scaling = replace(TRACKING, follows=Follows.CONCURRENCY, target=1.0, minimum=8, maximum=20)
    fleet = Fleet(scaling, 8, 0, MONDAY)
    seen = []
    for slot in range(1, 5):
        fleet.begin_slot(10.0 * (slot - 1))
        fleet.end_slot(10.0 * slot, 6000, 16.0, 0.0)
        seen.append(fleet.serving)
    assert seen == [8, 8, 16, 16]
    day = (
        ScheduledBounds("cron(5 0 ? * MON *)", "UTC", (4, 8)),
        ScheduledBounds("cron(10 0 ? * MON *)", "UTC", (1, 2)),
    )
    found = counts(replace(TRACKING, schedules=day), [50] * 12)
    assert found == [1] * 5 + [4] * 5 + [2] * 2


@pytest.mark.parametrize("follows", [Follows.BACKLOG, Follows.CONCURRENCY])
def test_a_request_wakes_an_empty_fleet(follows: Follows):
    empty = replace(TRACKING, follows=follows, target=5.0, minimum=0, wakes=True)
    found = counts(empty, [0, 2, 0, 0, 0], count=0)
    assert found == [0, 1, 1, 1, 1]
    # Without requests it sleeps after a quarter of an hour.
    assert counts(empty, [0] * 20, count=1) == [1] * 14 + [0] * 6


def test_times_of_requests_are_counted_and_periods_are_spread():
    single = read_trace(["seconds\n", "100\n", "101\n", "105.5\n", "125\n"], "t.csv")
    assert single.requests == (3, 0, 1)
    periods = read_trace(["0,60\n", "60,0\n", "120,30\n"], "t.csv")
    assert periods.requests == pytest.approx([10] * 6 + [0] * 6 + [5] * 6)
    assert periods.source == "90 requests of t.csv in 180 s"


def test_every_wrong_line_and_a_gap_are_reported():
    lines = ["seconds,requests\n", "0,1\n", "60,-1\n", "x,2\n", "120,nan\n", "30,1\n", "90\n"]
    found = [
        (str(each.location), each.message)
        for each in refusal(read_trace, [*lines, "30,5\n"], "t.csv").problems
    ]
    assert found == [
        ("t.csv:3:1", "the number of requests -1 is negative"),
        ("t.csv:4:1", "'x' is no time"),
        ("t.csv:5:1", "'nan' is no number of requests"),
        ("t.csv:7:1", "the line has 1 columns, and not 2"),
        ("t.csv:8:1", "the time 30 comes twice"),
    ]
    with pytest.raises(UserError, match=r"t\.csv:3:1: the time 5 is before the one above it, 9"):
        read_trace(["1\n", "9\n", "5\n"], "t.csv")
    with pytest.raises(UserError, match=r"t\.csv:4:1: a gap: nothing from 120 to 300") as caught:
        read_trace(["seconds,requests\n", "0,1\n", "60,1\n", "300,1\n"], "t.csv")
    assert "0 for a quiet period" in caught.value.problems[0].remedy


def test_profiles_have_the_rates_that_they_say_or_everything_wrong_is_reported():
    daily = profile("daily:low=10,high=30").requests
    assert (len(daily), min(daily), max(daily)) == (8640, pytest.approx(100), pytest.approx(300))
    assert sum(daily) == pytest.approx(20 * 86_400)
    burst = profile("burst:base=1,peak=5,every=100,length=30,hours=1").requests
    assert burst[:10] == (10,) * 7 + (50,) * 3
    assert profile("constant:rate=2,hours=0.5").requests == (20,) * 180
    caught = refusal(profile, "daily:low=-1,hi=3")
    assert [each.message for each in caught.problems] == [
        "low is '-1', and not a number from 0 to 1,000,000",
        "daily has no 'hi'",
        "daily needs 'high'",
    ]
    assert caught.problems[0].remedy == "Write for example `daily:low=10,high=100,hours=24`."
