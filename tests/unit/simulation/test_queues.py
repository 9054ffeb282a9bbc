"""Waits of a simulated fleet, compared with the textbook's M/M/c queue and with single events."""

import heapq
import math
import random
from dataclasses import replace
from typing import Any

import pytest

from slipway.simulation.fleet_of import SimulatedFleet
from slipway.simulation.queues import Bounds, ServiceTimes
from slipway.simulation.run import Goal, Simulation, hold, simulate
from slipway.simulation.scaling import Follows, Scaling
from slipway.simulation.traffic import profile

MEAN_SECONDS = 0.1


def steady(
    load: float, instances: int, bounds: Bounds | None = None, variation: float = 1.0
) -> Simulation:
    fleet = SimulatedFleet(None, instances, 1, bounds or Bounds(), 1.0, None)
    rate = load * instances / MEAN_SECONDS
    service = ServiceTimes(MEAN_SECONDS, variation, 1)
    traffic = profile(f"constant:rate={rate},hours=2")
    return simulate(fleet, service, traffic, start_seconds=0, points=100_000)


def textbook(load: float, servers: int) -> tuple[float, float, float]:
    """Mean wait, p50 and p99 of an M/M/c queue, by its sums of factorials."""
    offered, rate = load * servers, 1 / MEAN_SECONDS
    last = offered**servers / math.factorial(servers) / (1 - load)
    waiting = last / (sum(offered**n / math.factorial(n) for n in range(servers)) + last)
    leaving = servers * rate * (1 - load)

    def later(seconds: float) -> float:
        own = math.exp(-rate * seconds)
        if math.isclose(leaving, rate):
            return (1 - waiting) * own + waiting * own * (1 + rate * seconds)
        both = (leaving * own - rate * math.exp(-leaving * seconds)) / (leaving - rate)
        return (1 - waiting) * own + waiting * both

    def at(share: float) -> float:
        low, high = 0.0, 100.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if later(middle) > 1 - share else (low, middle)
        return high

    return waiting / leaving, at(0.5), at(0.99)


@pytest.mark.parametrize("servers", [1, 4, 20])
@pytest.mark.parametrize("load", [0.3, 0.7, 0.9, 0.95])
def test_it_is_the_queue_of_the_textbook_within_five_percent(load: float, servers: int):
    found = steady(load, servers)
    # Even the slots in which the queue still grows to its steady length are among them.
    measured = (found.mean_wait_seconds, found.p50_seconds, found.p99_seconds)
    assert measured == pytest.approx(textbook(load, servers), rel=0.05)
    assert found.failed == 0


def events(load: float, servers: int, variation: float, *, is_pooled: bool) -> tuple[float, float]:
    """Mean wait and p99 of single requests, each of which takes the server that is free first."""
    draw = random.Random(7)  # noqa: S311  # draws of a simulation
    at, waits, times = 0.0, 0.0, list[float]()
    queues = 1 if is_pooled else servers
    free = [[0.0] * (servers // queues) for _ in range(queues)]
    shape = variation**-2
    for _ in range(100_000):
        at += draw.expovariate(load * servers / MEAN_SECONDS)
        queue = draw.choice(free)
        begins = max(at, heapq.heappop(queue))
        ends = begins + draw.gammavariate(shape, MEAN_SECONDS / shape)
        heapq.heappush(queue, ends)
        waits += begins - at
        times.append(ends - at)
    return waits / len(times), sorted(times)[int(0.99 * len(times))]


@pytest.mark.parametrize(
    ("servers", "variation", "is_pooled"), [(4, 0.5, True), (4, 2.0, True), (4, 1.0, False)]
)
def test_other_times_and_routing_are_near_single_events(
    servers: int, variation: float, is_pooled: bool
):
    found = steady(0.8, servers, Bounds(is_pooled=is_pooled), variation)
    wait, p99 = events(0.8, servers, variation, is_pooled=is_pooled)
    assert found.mean_wait_seconds == pytest.approx(wait, rel=0.15)
    assert found.p99_seconds == pytest.approx(p99, rel=0.15)


def test_what_is_beyond_the_capacity_is_refused_or_times_out():
    found = steady(2.0, 2, Bounds(queue_length=20))
    # Half of the requests, after the queue is full.
    assert found.refused / found.requests == pytest.approx(0.5, abs=0.01)
    # 40 requests wait for two servers: two seconds, and their own time.
    assert found.p50_seconds == pytest.approx(20 * MEAN_SECONDS + 0.07, rel=0.1)
    assert found.timed_out == 0
    found = steady(2.0, 2, Bounds(seconds=60))
    assert found.refused == 0
    # Half find no time in the queue, and some of the others are computed a little too late.
    assert 0.5 <= found.timed_out / found.requests < 0.75
    assert found.p99_seconds is not None
    assert found.p99_seconds <= 60


def test_requests_wait_for_an_instance_that_starts_and_leave_in_order():
    scaling = Scaling(Follows.BACKLOG, 5.0, 0, 1, 60, 300, wakes=True)
    fleet = SimulatedFleet(scaling, 0, 1, Bounds(keeps=True), 1.0, None)
    service, traffic = ServiceTimes(MEAN_SECONDS, 0, 1), profile("constant:rate=2,hours=1")
    found = simulate(fleet, service, traffic, start_seconds=300)
    # It is wanted after a minute and serves after six. The request of second t has 2 t before it,
    # of which it answers 10 a second: 360 - 0.8 t seconds. The queue is empty after 90 seconds.
    waits = 2 * (360**2 - 0.8 * 360**2 / 2) + 2 * 90 * 72 / 2
    assert found.mean_wait_seconds == pytest.approx(waits / 7200, rel=0.02)
    assert found.instance_hours == pytest.approx(59 / 60)
    # One of a hundred came in the first 36 seconds.
    assert found.p99_seconds == pytest.approx(360 - 0.8 * 36, rel=0.01)


def test_a_goal_that_is_just_met_changes_nothing_and_one_just_missed_has_no_result():
    subject = SimulatedFleet(None, 3, 1, Bounds(queue_length=4), None, None)
    service = ServiceTimes(0.1, 1.0, 1)
    traffic = profile("burst:base=5,peak=40,every=900,length=60,hours=0.5")
    timing: Any = {"start_seconds": 300.0, "begin": 0.0, "points": 5000}
    whole = simulate(subject, service, traffic, **timing)
    assert whole.failed > 0
    assert whole.p99_seconds is not None
    met = Goal(whole.p99_seconds, whole.failed, whole.instance_hours + 1)

    def run(goal: Goal) -> Simulation | None:
        return hold(subject, service, traffic, goal, **timing)

    assert run(met) == whole
    assert run(Goal(math.inf, math.inf, math.inf)) == whole
    assert run(replace(met, instance_hours=whole.instance_hours)) is None
    assert run(replace(met, failed=whole.failed * 0.999)) is None
    assert run(replace(met, p99_seconds=whole.p99_seconds * 0.999)) is None
