"""The load driver: a number of clients, each with one request in flight at any time.

    python -m benchmarks.load < {"port": ..., "load": {...}}

It runs in a process of its own, so that its cost is not in the server's process or in the
benchmark's. A client is a thread with one connection (`benchmarks.clients`). A deployed endpoint is
loaded through `drive_through`, in the processes of `benchmarks.neuron.endpoint`.

The load runs in these steps. Every client connects, and all start together. Each sends its warm-up
requests, then the requests that count, one after the other. A client continues until it has sent
enough of them and has done so for long enough.

Throughput is the number of clients divided by the mean time that a request keeps its client. That
is Little's law, for clients that never pause. It uses whole cycles of every client, so it makes no
difference where in a batch of answers the measurement begins or ends.

This requires a server that serves its clients alike. If a server lets some clients wait until
others have ended, Little's law counts them as if they were measured together. The throughput of
such a server is its number of answers divided by the time from the first request to the last
answer. Fewer clients are left at the end of that time, so it takes many requests.
"""

import gc
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.clients import Clients, Connect
from benchmarks.connections import Exchange, connected_to
from benchmarks.execution import answer_call, call_module

# For starting the process and for ending what is under way.
_SPARE_SECONDS = 60.0


@dataclass(frozen=True)
class LoadSpecification:
    """One load.

    Args:
        bodies: sent in turn to /invocations; each client begins at another one.
        clients: requests in flight at any time.
        warm_up_requests: least number of requests of each client before those that count.
        warm_up_seconds: least time of each client's requests before those that count.
        requests: least number of requests of each client that count.
        seconds: least time of each client's requests that count, together.
        keep_up: whether clients that have enough continue, uncounted, until all have enough. The
            last clients are then answered under the same load. A server that answers one request at
            a time in order of arrival does not need it, because later requests do not change its
            answers.
        timeout_seconds: time of one request.
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
class LoadResult:
    """The measurements of a load.

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
        """Returns the throughput of a server that serves its clients alike; see the module."""
        return len(self.spans_seconds) * len(self.all_latencies_seconds) / sum(self.spans_seconds)

    @property
    def answers_per_second(self) -> float:
        """Returns the throughput of any server, over many requests; see the module."""
        return sum(count for _, _, count in self.answers) / self.seconds

    @property
    def all_latencies_seconds(self) -> list[float]:
        """Returns the latencies of all clients together."""
        return [latency for client in self.latencies_seconds for latency in client]


@dataclass
class _Client:
    """The times of one thread's requests: of each, the begin and the end.

    Args:
        times: of all requests, warm-up and uncounted requests included.
        first: number of requests before the first one that counts; None before that.
        enough: number of requests after which it had enough; 0 before that.
    """

    times: list[tuple[float, float]] = field(default_factory=list)
    first: int | None = None
    enough: int = 0


class _Load:
    """One load under way."""

    def __init__(self, connect: Connect, specification: LoadSpecification) -> None:
        self._specification = specification
        self._threads = Clients(specification.clients, connect)
        self._clients = [_Client() for _ in range(specification.clients)]
        self._answers: list[Counter[tuple[int, bytes]]] = [Counter() for _ in self._clients]
        self._missing = specification.clients
        self._lock = threading.Lock()

    def run(self) -> LoadResult:
        """Runs all clients to their end."""
        used = self._threads.run(self._send_all)
        answers = sum(self._answers, Counter())
        counted = [client.times[client.first : client.enough] for client in self._clients]
        return LoadResult(
            latencies_seconds=tuple(
                tuple(ended_at - began_at for began_at, ended_at in times) for times in counted
            ),
            spans_seconds=tuple(times[-1][1] - times[0][0] for times in counted),
            answers=tuple(
                (index, answer.decode("utf-8", "replace"), count)
                for (index, answer), count in sorted(answers.items())
            ),
            driver_processor_seconds=used,
            seconds=max(client.times[-1][1] for client in self._clients)
            - min(client.times[0][0] for client in self._clients),
        )

    def _send_all(self, number: int, exchange: Exchange) -> None:
        given, client = self._specification, self._clients[number]
        bodies = [body.encode() for body in given.bodies]
        times = client.times
        while not self._threads.failed.is_set() and (
            self._missing if given.keep_up else not client.enough
        ):
            index = (number + len(times) * given.clients) % len(bodies)
            began_at = time.perf_counter()
            answer = exchange(bodies[index])
            ended_at = time.perf_counter()
            self._answers[number][index, answer] += 1
            times.append((began_at, ended_at))
            if client.first is None:
                is_warm = began_at - times[0][0] >= given.warm_up_seconds
                if len(times) <= given.warm_up_requests or not is_warm:
                    continue
                client.first = len(times) - 1
            if (
                not client.enough
                and len(times) - client.first >= given.requests
                and ended_at - times[client.first][0] >= given.seconds
            ):
                client.enough = len(times)
                with self._lock:
                    self._missing -= 1


def drive_through(connect: Connect, specification: LoadSpecification) -> LoadResult:
    """Drives a load from this process over any connection."""
    return _Load(connect, specification).run()


def drive(port: int, specification: LoadSpecification) -> LoadResult:
    """Drives a load from this process, against a server on the loopback interface."""
    return drive_through(lambda: connected_to(port, specification.timeout_seconds), specification)


def drive_from_own_process(port: int, specification: LoadSpecification) -> LoadResult:
    """Drives a load from a fresh process, and allows every request of a client one time-out."""
    most = specification.warm_up_requests + specification.requests + 1
    limit_seconds = specification.seconds + most * specification.timeout_seconds + _SPARE_SECONDS
    document = {"port": port, "load": asdict(specification)}
    return LoadResult(**call_module("benchmarks.load", document, limit_seconds=limit_seconds))


# Any: JSON.
def _drive(document: Mapping[str, Any]) -> dict[str, Any]:
    # A collection would stop all clients at once.
    gc.disable()
    return asdict(drive(document["port"], LoadSpecification(**document["load"])))


if __name__ == "__main__":
    answer_call(_drive)
