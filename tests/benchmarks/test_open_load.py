"""The open loop: its arrivals, what a stall does to it, and how it fails."""

import asyncio
import math
import time
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Any

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import latencies_of
from benchmarks.load import (
    LoadSpecification,
    OpenLoadSpecification,
    drive_open_through,
    drive_through,
)
from slipway.benchmarking.arrivals import poisson_arrivals
from slipway.benchmarking.connections import LoadError
from tests.benchmarks.load_server import Answering, upper

PATIENCE_SECONDS = 10.0


def specification(**changed: Any) -> OpenLoadSpecification:
    given: dict[str, Any] = {
        "bodies": ("a", "b", "c"),
        "requests_per_second": 100.0,
        "connections": 4,
        "seconds": 0.2,
        "timeout_seconds": PATIENCE_SECONDS,
    }
    return OpenLoadSpecification(**(given | changed))


def arrivals(asked: OpenLoadSpecification) -> list[float]:
    seconds = asked.warm_up_seconds + asked.seconds
    return list(poisson_arrivals(asked.requests_per_second, seconds, asked.seed))


def test_arrivals_are_a_poisson_process_of_the_rate() -> None:
    asked = specification(requests_per_second=50.0, seconds=200.0, seed=3)
    times = list(arrivals(asked))
    assert times == list(arrivals(asked))
    assert times != list(arrivals(specification(requests_per_second=50.0, seconds=200.0, seed=4)))
    assert 0 < times[0] < times[-1] < 200
    # Four standard deviations of the count, which is its own variance.
    assert abs(len(times) - 10_000) < 4 * 100
    gaps = [later - earlier for earlier, later in pairwise(times)]
    # The mean of an exponential distribution is its standard deviation.
    assert math.isclose(pstdev(gaps), fmean(gaps), rel_tol=0.05)


def test_a_stall_shows_in_the_open_loop_and_not_in_the_closed_one() -> None:
    """The server stalls for 0.2 s in every second, and else takes a millisecond."""
    began_at = time.perf_counter()

    async def exchange(body: bytes) -> bytes:
        into_second = (time.perf_counter() - began_at) % 1.0
        await asyncio.sleep(1.0 - into_second if into_second > 0.8 else 0.001)
        return body

    closed = drive_through(
        lambda: Answering(exchange), LoadSpecification(bodies=("a",), clients=1, seconds=2.0)
    )
    opened = drive_open_through(
        lambda: Answering(exchange),
        specification(requests_per_second=150.0, seconds=2.0, connections=2),
    )
    closed_p99 = latencies_of(closed.all_latencies_seconds).p99
    open_p99 = latencies_of(opened.latencies_seconds).p99
    assert closed_p99 < 0.05
    assert open_p99 > 0.15
    # Nearly as many requests were sent as arrived, and those behind the stall were sent late.
    assert max(opened.late_seconds) > 0.1


def test_requests_of_the_warm_up_do_not_count() -> None:
    asked = specification(warm_up_seconds=0.1, seconds=0.1, requests_per_second=200.0)
    times = list(arrivals(asked))
    sent: list[bytes] = []

    async def exchange(body: bytes) -> bytes:
        sent.append(body)
        return body

    result = drive_open_through(lambda: Answering(exchange), asked)
    assert result.answers == len(sent) == len(times)
    assert len(result.latencies_seconds) == sum(at >= 0.1 for at in times)
    assert len(result.late_seconds) == len(result.latencies_seconds)
    assert set(sent) == {b"a", b"b", b"c"}


def test_the_rate_is_the_answers_over_their_time() -> None:
    result = drive_open_through(lambda: Answering(upper), specification())
    assert result.requests_per_second == len(result.latencies_seconds) / result.seconds


def test_a_load_without_a_request_says_so() -> None:
    with pytest.raises(BenchmarkError, match="the load has no request: raise its rate or its se"):
        drive_open_through(lambda: Answering(upper), specification(requests_per_second=0.001))


def test_a_failure_ends_the_wait_for_later_arrivals() -> None:
    async def exchange(body: bytes) -> bytes:
        raise LoadError("a request was answered with 503: full")

    began_at = time.perf_counter()
    with pytest.raises(BenchmarkError, match=r"^a request was answered with 503: full$"):
        drive_open_through(lambda: Answering(exchange), specification(seconds=60.0, connections=8))
    assert time.perf_counter() - began_at < 30


def test_a_request_does_not_wait_for_the_answer_before_it() -> None:
    later = asyncio.Event()

    async def exchange(body: bytes) -> bytes:
        if body == b"earlier":
            await asyncio.wait_for(later.wait(), PATIENCE_SECONDS)
        else:
            later.set()
        return body

    drive_open_through(
        lambda: Answering(exchange), specification(bodies=("earlier", "later"), connections=2)
    )
