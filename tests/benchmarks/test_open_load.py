"""The open loop: its arrivals, what a stall does to it, and how it fails."""

import asyncio
import math
import time
from itertools import pairwise
from statistics import fmean, pstdev
from typing import cast

import pytest

from benchmarks.estimates import latencies_of
from benchmarks.load import LoadSpecification, drive_through
from slipway.benchmarking.arrivals import poisson_arrivals
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import Load, OpenLoad, run_load
from tests.benchmarks.load_server import Answering, upper

PATIENCE_SECONDS = 10.0


def driven(
    exchange,
    rate=100.0,
    seconds=0.2,
    *,
    connections=4,
    warm_up_seconds=0.0,
    bodies=(b"a", b"b", b"c"),
):
    """Returns the samples of a load with Poisson arrivals."""
    given = OpenLoad(bodies, poisson_arrivals(rate, seconds, seed=1), connections, warm_up_seconds)
    load = Load(given, lambda: cast("Connection", Answering(exchange)), bytes)
    run_load(load.run())
    return [each for client in load.samples for each in client]


def test_arrivals_are_a_poisson_process_of_the_rate():
    times = poisson_arrivals(50.0, 200.0, seed=3)
    assert times == poisson_arrivals(50.0, 200.0, seed=3)
    assert times != poisson_arrivals(50.0, 200.0, seed=4)
    assert 0 < times[0] < times[-1] < 200
    # Four standard deviations of the count, which is its own variance.
    assert abs(len(times) - 10_000) < 4 * 100
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The mean of an exponential distribution is its standard deviation.
    assert math.isclose(pstdev(gaps), fmean(gaps), rel_tol=0.05)


def test_a_stall_shows_in_the_open_loop_and_not_in_the_closed_one():
    """The server stalls for 0.2 s in every second, and else takes a millisecond."""
    began_at = time.perf_counter()

    async def exchange(body):
        into_second = (time.perf_counter() - began_at) % 1.0
        await asyncio.sleep(1.0 - into_second if into_second > 0.8 else 0.001)
        return body

    closed = drive_through(
        lambda: Answering(exchange), LoadSpecification(bodies=("a",), clients=1, seconds=2.0)
    )
    opened = driven(exchange, 150.0, 2.0, connections=2)
    closed_p99 = latencies_of(closed.all_latencies_seconds).p99
    open_p99 = latencies_of([each.latency_seconds for each in opened]).p99
    assert closed_p99 < 0.05
    assert open_p99 > 0.15
    # Nearly as many requests were sent as arrived, and those behind the stall were sent late.
    assert max(each.late_seconds for each in opened) > 0.1


def test_requests_of_the_warm_up_do_not_count():
    times = poisson_arrivals(200.0, 0.2, seed=1)
    found = driven(upper, 200.0, warm_up_seconds=0.1)
    assert len(found) == len(times)
    assert sum(each.counts for each in found) == sum(at >= 0.1 for at in times)
    assert {each.body for each in found} == {0, 1, 2}


def test_a_load_without_a_request_says_so():
    with pytest.raises(LoadError, match="the load has no request: raise its rate or its seconds"):
        driven(upper, 0.001)


def test_a_failure_ends_the_wait_for_later_arrivals():
    async def exchange(_body):
        raise LoadError("a request was answered with 503: full")

    began_at = time.perf_counter()
    with pytest.raises(LoadError, match=r"^a request was answered with 503: full$"):
        driven(exchange, seconds=60.0, connections=8)
    assert time.perf_counter() - began_at < 30


def test_a_request_does_not_wait_for_the_answer_before_it():
    later = asyncio.Event()

    async def exchange(body):
        if body == b"earlier":
            await asyncio.wait_for(later.wait(), PATIENCE_SECONDS)
        else:
            later.set()
        return body

    driven(exchange, connections=2, bodies=(b"earlier", b"later"))
