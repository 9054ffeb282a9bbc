"""The open loop: requests arrive when they arrive, whether or not earlier ones are answered.

A client of the closed loop (`benchmarks.load`) waits for its answer before it sends again. While a
server stalls, such a load sends nothing, and the stall costs each client one slow request. Users do
not wait for each other. Here the arrivals are a Poisson process, drawn before the load begins. The
latency of a request counts from its arrival, so a request that had to wait for a connection has
waited.

Each connection is a thread that takes the next arrival, waits for its time, and sends. If every
connection is busy at an arrival, the request is sent late. `LoadResult.late_seconds` says how late
requests were. A lateness of more than a few milliseconds means that the server, or the number of
connections, did not keep up with the rate.
"""

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.clients import Clients, Connect
from benchmarks.connections import Exchange
from benchmarks.errors import BenchmarkError

# Between the last connection and the first arrival.
_LEAD_SECONDS = 0.05


@dataclass(frozen=True)
class OpenLoadSpecification:
    """One load of the open loop.

    The bodies are sent in turn, at the mean rate. The arrivals of `seconds` count, and those of the
    warm-up before them do not. A request's time-out begins when it is sent.
    """

    bodies: Sequence[str]
    requests_per_second: float
    connections: int
    seconds: float
    warm_up_seconds: float = 0.0
    seed: int = 1
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class OpenLoadResult:
    """The measurements of a load of the open loop.

    Args:
        latencies_seconds: of the requests that count, in the order of their arrivals: from the
            arrival to having read the last byte of the answer.
        late_seconds: from the arrival of each of these requests to sending it.
        seconds: from the first arrival that counts to the last answer to one that counts.
        answers: number of all answers, also to requests of the warm-up.
        driver_processor_seconds: processor time of the driver's process.
    """

    latencies_seconds: Sequence[float]
    late_seconds: Sequence[float]
    seconds: float
    answers: int
    driver_processor_seconds: float

    @property
    def requests_per_second(self) -> float:
        """Returns the rate of answers to requests that count."""
        return len(self.latencies_seconds) / self.seconds


def arrivals(specification: OpenLoadSpecification) -> Iterator[float]:
    """Yields the times of all requests in seconds, from 0; the same for the same seed."""
    generator = random.Random(specification.seed)  # noqa: S311  # of an experiment, not of a secret
    end = specification.warm_up_seconds + specification.seconds
    at = generator.expovariate(specification.requests_per_second)
    while at < end:
        yield at
        at += generator.expovariate(specification.requests_per_second)


class _Load:
    """One load under way."""

    def __init__(self, connect: Connect, specification: OpenLoadSpecification) -> None:
        self._specification = specification
        self._arrivals = list(arrivals(specification))
        if not self._arrivals:
            raise BenchmarkError("the load has no request: raise its rate or its seconds")
        self._clients = Clients(specification.connections, connect, self._begin)
        self._next = itertools.count()
        # The times of sending and of the answer's end, by the arrival's index.
        self._times: dict[int, tuple[float, float]] = {}
        self._began_at = 0.0

    def run(self) -> OpenLoadResult:
        """Sends all requests."""
        used = self._clients.run(self._send)
        first = self._specification.warm_up_seconds
        counted = [
            (self._began_at + arrival, *self._times[index])
            for index, arrival in enumerate(self._arrivals)
            if arrival >= first
        ]
        if not counted:
            raise BenchmarkError("no request arrived after the warm-up: raise the seconds")
        return OpenLoadResult(
            latencies_seconds=tuple(ended_at - at for at, _, ended_at in counted),
            late_seconds=tuple(max(0.0, sent_at - at) for at, sent_at, _ in counted),
            seconds=max(ended_at for *_, ended_at in counted) - counted[0][0],
            answers=len(self._times),
            driver_processor_seconds=used,
        )

    def _begin(self) -> None:
        self._began_at = time.perf_counter() + _LEAD_SECONDS

    def _send(self, _number: int, exchange: Exchange) -> None:
        bodies = [body.encode() for body in self._specification.bodies]
        for index in self._next:
            if index >= len(self._arrivals):
                return
            wait_seconds = self._began_at + self._arrivals[index] - time.perf_counter()
            if self._clients.failed.wait(max(0.0, wait_seconds)):
                return
            sent_at = time.perf_counter()
            exchange(bodies[index % len(bodies)])
            self._times[index] = (sent_at, time.perf_counter())


def drive_open_through(connect: Connect, specification: OpenLoadSpecification) -> OpenLoadResult:
    """Drives a load of the open loop from this process over any connection."""
    return _Load(connect, specification).run()
