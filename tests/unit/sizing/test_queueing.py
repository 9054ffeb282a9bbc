"""Traffic that comes, and requests that wait: formulas of queues, and a simulation."""

import heapq
import math
import random

import pytest

from slipway.errors import UserError
from slipway.sizing.queueing import answers, capacity
from slipway.sizing.traffic import read_traffic
from tests.support.projects import refusal


def test_a_batch_waits_as_its_process_says_until_its_queue_grows_for_ever():
    # M/M/1: a request finds n others with (1 - rho) rho^n.
    found = answers(0.5, [1.0])
    assert found.requests == pytest.approx(1.0, rel=1e-3)
    found = answers(1.0, [2.0] * 64)
    assert found.p99_seconds == pytest.approx(2.0, rel=1e-6)
    # Little's law: 1 a second, 2 seconds each.
    assert found.requests == pytest.approx(2.0, rel=1e-3)
    assert answers(1.0, [1.0]) is None
    assert answers(5.0, [1.0, 1.2, 1.5]) is None
    assert capacity([1.0, 1.2, 1.5]) == pytest.approx(2.0)
    seconds = [1 + number / 8 for number in range(16)]
    p99 = [answers(rate, seconds).p99_seconds for rate in (0.5, 2.0, 4.0, 5.0)]
    assert p99 == sorted(p99)
    assert p99[0] < p99[-1]


@pytest.mark.parametrize("rate", [2.0, 6.0])
def test_p99_is_that_of_a_simulated_copy_with_exponential_answers(rate):
    """M/M/c: places that do not slow each other down, simulated request by request."""
    places, mean = 4, 0.5
    generator = random.Random(3)  # noqa: S311  # of a simulation
    free = [0.0] * places
    now, waits = 0.0, []
    for _ in range(30_000):
        now += generator.expovariate(rate)
        start = max(now, heapq.heappop(free))
        heapq.heappush(free, start + generator.expovariate(1 / mean))
        waits.append(start - now)
    simulated = sorted(waits)[math.ceil(0.99 * len(waits))]
    predicted = answers(rate, [mean] * places).p99_seconds - mean
    assert predicted == pytest.approx(simulated, rel=0.1, abs=0.02)


def test_the_busiest_minute_and_the_mean_count_and_a_gap_is_quiet():
    quiet = [str(second) for second in range(0, 600, 10)]
    busy = [f"{600 + each / 2}" for each in range(120)]
    found = read_traffic(["seconds", *quiet, *busy], "times.csv")
    assert found.peak == pytest.approx(2.0, rel=0.02)
    assert found.mean == pytest.approx(180 / 659.5)
    assert found.source == "180 requests of times.csv in 660 s, at the busiest minute"
    found = read_traffic(["0", "1", "2", "86400"], "times.csv")
    assert found.mean == pytest.approx(4 / 86_400)
    assert found.peak == pytest.approx(3 / 60)


@pytest.mark.parametrize(("period", "peak"), [(10, 10 / 3), (45, 3.0), (300, 3.0)])
def test_periods_count_by_the_busiest_minute_or_by_their_own_length(period, peak):
    counts = [period] * 6 + [3 * period] * 2 + [6 * period if period == 10 else 0] * 2
    lines = [f"{each * period},{count}" for each, count in enumerate(counts)]
    found = read_traffic(lines, "times.csv")
    assert found.peak == pytest.approx(peak)
    assert found.mean == pytest.approx(sum(counts) / period / 10)


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
