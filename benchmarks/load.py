"""Loads of the benchmarks, each in a process of its own, with the driver of `slipway.benchmarking`.

    python -m benchmarks.load < {"port": ..., "load": {...}}

The driver's cost is then not in the server's process or in the benchmark's.
`slipway.benchmarking.load` describes the two loops, and what their throughput means.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from benchmarks.errors import BenchmarkError
from benchmarks.execution import answer_call, call_module
from slipway.benchmarking.arrivals import poisson_arrivals
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import (
    ClosedLoad,
    Load,
    OpenLoad,
    Sample,
    run_load,
)
from slipway.benchmarking.signed import SignedRequests

# For starting the process and for ending what is under way.
_SPARE_SECONDS = 60.0


@dataclass(frozen=True)
class LoadSpecification:
    """One load of the closed loop; see `ClosedLoad`.

    The bodies are sent to /invocations.
    """

    bodies: Sequence[str]
    clients: int
    warm_up_requests: int = 0
    warm_up_seconds: float = 0.0
    requests: int = 1
    seconds: float = 0.0
    keep_up: bool = True
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class OpenLoadSpecification:
    """One load of the open loop; see `OpenLoad`.

    The arrivals are a Poisson process. Those of `seconds` count, and those of the warm-up before
    them do not.
    """

    bodies: Sequence[str]
    requests_per_second: float
    connections: int
    seconds: float
    warm_up_seconds: float = 0.0
    seed: int = 1
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class LoadResult:
    """The measurements of a load of the closed loop.

    Args:
        latencies_seconds: of the requests that count, client by client: from sending the first byte
            to having read the last.
        spans_seconds: of each client, from the start of its first request that counts to the end of
            its last.
        answers: how often a body got an answer, warm-up and uncounted requests included: pairs of
            the body's index and the answer, with their count.
        driver_processor_seconds: processor time of the driver's process while the clients ran.
        seconds: from the first request of any client to the last answer, warm-up and uncounted
            requests included.
    """

    latencies_seconds: Sequence[Sequence[float]]
    spans_seconds: Sequence[float]
    answers: Sequence[tuple[int, str, int]]
    driver_processor_seconds: float
    seconds: float

    @property
    def requests_per_second(self) -> float:
        """Returns the throughput of a server that serves its clients alike, by Little's law."""
        return len(self.spans_seconds) * len(self.all_latencies_seconds) / sum(self.spans_seconds)

    @property
    def answers_per_second(self) -> float:
        """Returns the throughput of any server, over many requests."""
        return sum(count for _, _, count in self.answers) / self.seconds

    @property
    def all_latencies_seconds(self) -> list[float]:
        """Returns the latencies of all clients together."""
        return [latency for client in self.latencies_seconds for latency in client]


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


def drive_through(
    connect: Callable[[], Connection],
    specification: LoadSpecification,
    request: Callable[[bytes], bytes] = bytes,
) -> LoadResult:
    """Drives a load of the closed loop from this process."""
    given = asdict(specification)
    given.pop("timeout_seconds")
    bodies = [body.encode() for body in given.pop("bodies")]
    load = _run(Load(ClosedLoad(bodies, **given), connect, request))
    counted = [[each for each in client if each.counts] for client in load.samples]
    answers: Counter[tuple[int, bytes]] = Counter()
    for client in load.samples:
        answers.update((each.body, each.reply.body) for each in client if each.reply is not None)
    return LoadResult(
        latencies_seconds=tuple(tuple(each.latency_seconds for each in c) for c in counted),
        spans_seconds=tuple(c[-1].ended_at - c[0].sent_at for c in counted),
        answers=tuple(
            (index, answer.decode("utf-8", "replace"), count)
            for (index, answer), count in sorted(answers.items())
        ),
        driver_processor_seconds=load.processor_seconds,
        seconds=max(client[-1].ended_at for client in load.samples)
        - min(client[0].sent_at for client in load.samples),
    )


def drive_open_through(
    connect: Callable[[], Connection],
    given: OpenLoadSpecification,
    request: Callable[[bytes], bytes] = bytes,
) -> OpenLoadResult:
    """Drives a load of the open loop from this process."""
    end = given.warm_up_seconds + given.seconds
    arrivals = poisson_arrivals(given.requests_per_second, end, given.seed)
    bodies = [body.encode() for body in given.bodies]
    load = _run(
        Load(OpenLoad(bodies, arrivals, given.connections, given.warm_up_seconds), connect, request)
    )
    samples = [each for client in load.samples for each in client]
    counted: list[Sample] = sorted(
        (each for each in samples if each.counts), key=lambda each: each.intended_at
    )
    if not counted:
        raise BenchmarkError("no request arrived after the warm-up: raise the seconds")
    return OpenLoadResult(
        latencies_seconds=tuple(each.latency_seconds for each in counted),
        late_seconds=tuple(each.late_seconds for each in counted),
        seconds=max(each.ended_at for each in counted) - counted[0].intended_at,
        answers=len(samples),
        driver_processor_seconds=load.processor_seconds,
    )


def plain_requests(url: str) -> Callable[[bytes], bytes]:
    """Returns a function of a body to an unsigned request to a server's /invocations."""
    head = f"POST /invocations HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
    typed = f"{head}Content-Type: application/json\r\nContent-Length: "

    def request(body: bytes) -> bytes:
        return f"{typed}{len(body)}\r\n\r\n".encode() + body

    return request


def drive(port: int, specification: LoadSpecification) -> LoadResult:
    """Drives a load from this process, against a server on the loopback interface."""
    url = f"http://127.0.0.1:{port}"
    connect = partial(Connection, url, specification.timeout_seconds)
    return drive_through(connect, specification, plain_requests(url))


def drive_signed(
    requests: SignedRequests, load: LoadSpecification | OpenLoadSpecification
) -> LoadResult | OpenLoadResult:
    """Drives a load from this process, with signed requests."""
    connect = partial(Connection, requests.url, load.timeout_seconds)
    if isinstance(load, OpenLoadSpecification):
        return drive_open_through(connect, load, requests.of)
    return drive_through(connect, load, requests.of)


def _run(load: Load) -> Load:
    try:
        run_load(load.run())
    except LoadError as error:
        raise BenchmarkError(str(error)) from None
    return load


def drive_from_own_process(port: int, specification: LoadSpecification) -> LoadResult:
    """Drives a load from a fresh process, and allows every request of a client one time-out."""
    most = specification.warm_up_requests + specification.requests + 1
    limit_seconds = specification.seconds + most * specification.timeout_seconds + _SPARE_SECONDS
    document = {"port": port, "load": asdict(specification)}
    return LoadResult(**call_module("benchmarks.load", document, limit_seconds=limit_seconds))


# Any: JSON.
def _drive(document: Mapping[str, Any]) -> dict[str, Any]:
    return asdict(drive(document["port"], LoadSpecification(**document["load"])))


if __name__ == "__main__":
    answer_call(_drive)
