"""Traces of requests: the busiest minute, the mean, and what is refused."""

import pytest

from slipway.errors import UserError
from slipway.sizing.traffic import read_traffic
from tests.support.projects import refusal


def test_the_busiest_minute_and_the_mean_count():
    quiet = [str(second) for second in range(0, 600, 10)]
    busy = [f"{600 + each / 2}" for each in range(120)]
    found = read_traffic(["seconds", *quiet, *busy], "times.csv")
    assert found.peak == pytest.approx(2.0, rel=0.02)
    assert found.mean == pytest.approx(180 / 659.5)
    assert found.source == "180 requests of times.csv in 660 s, at the busiest minute"


@pytest.mark.parametrize(("period", "peak"), [(10, 10 / 3), (45, 3.0), (300, 3.0)])
def test_periods_count_by_the_busiest_minute_or_by_their_own_length(period, peak):
    counts = [period] * 6 + [3 * period] * 2 + [6 * period if period == 10 else 0] * 2
    lines = [f"{each * period},{count}" for each, count in enumerate(counts)]
    found = read_traffic(lines, "times.csv")
    assert found.peak == pytest.approx(peak)
    assert found.mean == pytest.approx(sum(counts) / period / 10)


def test_a_gap_is_a_time_without_requests():
    found = read_traffic(["0", "1", "2", "86400"], "times.csv")
    assert found.mean == pytest.approx(4 / 86_400)
    assert found.peak == pytest.approx(3 / 60)


def test_every_wrong_line_is_reported():
    lines = ["time", "0", "-1", "8", "7.5", "later", "nan", "9,5", ""]
    assert [
        (each.location.line, each.message)
        for each in refusal(read_traffic, lines, "times.csv").problems
    ] == [
        (3, "the time -1 is negative"),
        (5, "the time 7.5 is before the one above it, 8"),
        (6, "'later' is no time"),
        (7, "'nan' is no time"),
        (8, "the line has 2 columns, and not 1"),
    ]


@pytest.mark.parametrize("lines", [[], ["seconds"], ["3"], ["3", "3"]])
def test_two_different_times_are_needed(lines):
    with pytest.raises(UserError, match="no two different times"):
        read_traffic(lines, "times.csv")
