"""Loads of the benchmarks, each in a process of its own, with the driver of `slipway.benchmarking`.

    python -m benchmarks.load < {"port": ..., "load": {...}}

The driver's cost is then not in the server's process or in the benchmark's.
`slipway.benchmarking.load` describes the loop, and what its throughput means.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from benchmarks.errors import BenchmarkError
from benchmarks.execution import answer_call, call_module
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import ClosedLoad, Load, run_load

# For starting the process and for ending what is under way.
_SPARE_SECONDS = 60.0


@dataclass(frozen=True)
class LoadSpecification:
    """One load of the closed loop on /invocations; see `ClosedLoad`."""

    bodies: Sequence[str]
    clients: int
    warm_up_requests: int = 0
    warm_up_seconds: float = 0.0
    requests: int = 1
    seconds: float = 0.0
    keep_up: bool = True
    timeout_seconds: float = 60.0


@dataclass(frozen=True)
class LoadResult:
    """The measurements of a load of the closed loop.

    Latencies and spans are of the requests that count, by client: from the first byte that is sent
    to the last that is read, and from the first request's start to the last one's end. Answers and
    seconds include all requests, warm-up too. `answers` has the index of a body, an answer, and how
    often it was given.
    """

    latencies_seconds: Sequence[Sequence[float]]
    spans_seconds: Sequence[float]
    answers: Sequence[tuple[int, str, int]]
    driver_processor_seconds: float  # while the clients ran
    seconds: float  # from the first request of any client to the last answer

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
        return [latency for client in self.latencies_seconds for latency in client]


def drive_through(
    connect: Callable[[], Connection],
    specification: LoadSpecification,
    request: Callable[[bytes], bytes] = bytes,
) -> LoadResult:
    given = asdict(specification)
    given.pop("timeout_seconds")
    bodies = [body.encode() for body in given.pop("bodies")]
    load = Load(ClosedLoad(bodies, **given), connect, request)
    try:
        run_load(load.run())
    except LoadError as error:
        raise BenchmarkError(str(error)) from None
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


def plain_requests(url: str) -> Callable[[bytes], bytes]:
    """Returns a function of a body to an unsigned request to a server's /invocations."""
    head = f"POST /invocations HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
    typed = f"{head}Content-Type: application/json\r\nContent-Length: "

    def request(body: bytes) -> bytes:
        return f"{typed}{len(body)}\r\n\r\n".encode() + body

    return request


def drive(port: int, specification: LoadSpecification) -> LoadResult:
    url = f"http://127.0.0.1:{port}"
    connect = partial(Connection, url, specification.timeout_seconds)
    return drive_through(connect, specification, plain_requests(url))


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
