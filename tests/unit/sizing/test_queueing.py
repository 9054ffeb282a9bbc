"""Waiting: held against formulas of queues, and a simulation."""

import heapq
import math
import random

import pytest

from slipway.sizing.queueing import answers, capacity


def test_a_batch_of_one_waits_as_the_process_of_births_and_deaths_says():
    # M/M/1: a request finds n others with (1 - rho) rho^n.
    found = answers(0.5, [1.0])
    assert found.requests == pytest.approx(1.0, rel=1e-3)


def test_many_places_without_slowing_wait_for_nothing():
    found = answers(1.0, [2.0] * 64)
    assert found.p99_seconds == pytest.approx(2.0, rel=1e-6)
    # Little's law: 1 a second, 2 seconds each.
    assert found.requests == pytest.approx(2.0, rel=1e-3)


def test_a_queue_that_grows_for_ever_has_no_times():
    assert answers(1.0, [1.0]) is None
    assert answers(5.0, [1.0, 1.2, 1.5]) is None


def test_capacity_is_the_best_batch():
    assert capacity([1.0, 1.2, 1.5]) == pytest.approx(2.0)


def test_more_traffic_waits_longer():
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
