"""Traces and profiles: their requests, and every line that is wrong."""

import pytest

from slipway.errors import UserError
from slipway.simulation.traffic import profile, read_trace
from tests.support.projects import refusal


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
