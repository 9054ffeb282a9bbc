"""What the driver reaches with a server that does nothing but wait.

With N connections of the closed loop, the server could answer N requests in each of its delays.
That rate is the ideal. A level at which the driver stays below `LEAST_SHARE` of it is refused:
its figures would be of this machine. The same holds for a rate that the driver cannot send in time.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from botocore.credentials import ReadOnlyCredentials

from slipway.benchmarking.arrivals import constant_arrivals
from slipway.benchmarking.connections import Connection, LoadError
from slipway.benchmarking.load import ClosedLoad, Load, OpenLoad, run_load
from slipway.benchmarking.signed import SignedRequests

DELAY_MILLISECONDS: Final = 50.0
LEAST_SHARE: Final = 0.9
MOST_LATE_SECONDS: Final = 0.01
"""Of the 99th percentile of requests that had a free connection."""
MOST_PROCESSOR_SHARE: Final = 0.8
"""Of one core. The event loop has no more, so beyond this requests wait in the driver."""

_SECONDS: Final = 0.6
_WARM_UP_SECONDS: Final = 0.2
_ATTEMPTS: Final = 3
_TIMEOUT_SECONDS: Final = 10.0
# A server that waits has a connection for each request of a rate in its delay, and some more.
_SPARE_CONNECTIONS: Final = 4


@dataclass(frozen=True)
class Level:
    """What the driver reached at one level.

    `share` is of the ideal rate. `late_seconds` is the 99th percentile of how late the driver sent.
    Without a reason the driver reaches the level.
    """

    concurrency: int | None
    requests_per_second: float | None
    share: float
    late_seconds: float
    reason: str | None


def driver_limit(load: Load) -> str | None:
    """Returns why a load measured the driver and not the server; None if it did not."""
    share = load.processor_seconds / load.seconds if load.seconds else 0.0
    if share > MOST_PROCESSOR_SHARE:
        return f"the client used {share:.0%} of a core"
    late = _late_seconds(load)
    if late > MOST_LATE_SECONDS:
        return f"the client sent requests {late * 1000:.0f} ms late (p99)"
    return None


def _late_seconds(load: Load) -> float:
    """Returns the 99th percentile of how late requests were sent with a free connection."""
    late = [each.driver_late_seconds for client in load.samples for each in client if each.counts]
    return float(np.percentile(late, 99)) if late else 0.0


def test_level(concurrency: int | None, rate: float | None, body: bytes) -> Level:
    """Tests one level with a typical request, and the best of some attempts counts."""
    load: ClosedLoad | OpenLoad
    if concurrency is not None:
        load = ClosedLoad([body], concurrency, warm_up_seconds=_WARM_UP_SECONDS, seconds=_SECONDS)
    else:
        assert rate is not None  # noqa: S101  # a level has one of the two
        arrivals = constant_arrivals(rate, _WARM_UP_SECONDS + _SECONDS)
        connections = int(rate * DELAY_MILLISECONDS / 1000 * 2) + _SPARE_CONNECTIONS
        load = OpenLoad([body], arrivals, connections, _WARM_UP_SECONDS)
    found: list[Level] = []
    with _server() as url:
        credentials = ReadOnlyCredentials("AKIDEXAMPLE", "example", None)
        path = "/endpoints/stub/invocations"
        requests = SignedRequests(f"{url}{path}", "us-east-1", lambda: credentials)
        while len(found) < _ATTEMPTS and not (found and found[-1].reason is None):
            attempt = Load(load, partial(Connection, url, _TIMEOUT_SECONDS), requests.of)
            try:
                run_load(attempt.run())
            except LoadError as error:
                return Level(concurrency, rate, 0.0, 0.0, str(error))
            found.append(_level(attempt, concurrency, rate))
    return max(found, key=lambda level: (level.reason is None, level.share))


def _level(load: Load, concurrency: int | None, rate: float | None) -> Level:
    share = 1.0
    if concurrency is not None:
        counted = [[each for each in client if each.counts] for client in load.samples]
        spans = sum(client[-1].ended_at - client[0].sent_at for client in counted)
        share = sum(map(len, counted)) * DELAY_MILLISECONDS / 1000 / spans
    reason = driver_limit(load)
    if reason is None and share < LEAST_SHARE:
        reason = f"the client reaches {share:.0%} of the ideal rate"
    return Level(concurrency, rate, share, _late_seconds(load), reason)


@contextlib.contextmanager
def _server() -> Iterator[str]:
    """Starts the server in a process of its own; gives its URL."""
    module = "slipway.benchmarking.idle_server"
    with subprocess.Popen(  # noqa: S603  # fixed arguments, no shell
        [sys.executable, "-m", module, "--delay-milliseconds", str(DELAY_MILLISECONDS)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        # Ctrl-C belongs to the command, which stops the server itself.
        process_group=0,
    ) as process:
        assert process.stdout is not None  # noqa: S101  # a pipe
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.kill()
