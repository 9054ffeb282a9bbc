"""Measures the load driver with signed requests, against a server that answers after 50 ms.

    python -m benchmarks.signed_driver

With N connections of the closed loop, the server could answer N requests every 50 ms. That rate is
the ideal. The goals are 95 % of it with 64 connections and 90 % with 128, and a p99 within 10 % of
the 50 ms. An idle machine of two cores is needed, because the server and the driver share them.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from botocore.credentials import ReadOnlyCredentials

from benchmarks.estimates import latencies_of
from benchmarks.load import LoadResult, LoadSpecification, drive_signed
from benchmarks.program import ExitOneParser, positive
from benchmarks.report import MILLISECONDS
from benchmarks.servers import idle_server
from benchmarks.shared_load import drive_in_processes, shared_out
from slipway.benchmarking.signed import SignedRequests

DELAY_MILLISECONDS: Final = 50.0
# Connections -> least share of the ideal rate.
GOALS: Final = {64: 0.95, 128: 0.90}
MOST_P99_RATIO: Final = 1.10

_WARM_UP_SECONDS: Final = 1.0
_BODIES: Final = tuple(json.dumps({"inputs": f"request {number}"}) for number in range(64))


def drive_stub(load: LoadSpecification, port: int) -> LoadResult:
    """Drives the load of one process against the server on a port."""
    requests = SignedRequests(
        f"http://127.0.0.1:{port}/endpoints/stub/invocations",
        "us-east-1",
        lambda: ReadOnlyCredentials("AKIDEXAMPLE", "example", None),
    )
    found = drive_signed(requests, load)
    assert isinstance(found, LoadResult)  # noqa: S101  # of the closed loop
    return found


def measure(connections: int, processes: int, seconds: float) -> dict[str, Any]:
    """Returns the rate, its share of the ideal, and the driver's processor time for a request."""
    with (
        tempfile.TemporaryDirectory() as folder,
        idle_server(Path(folder) / "log", DELAY_MILLISECONDS) as server,
    ):
        loads = [
            LoadSpecification(
                bodies=_BODIES, clients=share, warm_up_seconds=_WARM_UP_SECONDS, seconds=seconds
            )
            for share in shared_out(connections, processes)
        ]
        found = drive_in_processes(partial(drive_stub, port=server.port), loads)
    rate = sum(load.requests_per_second for load in found)
    ideal = connections / DELAY_MILLISECONDS * MILLISECONDS
    answers = sum(count for load in found for *_, count in load.answers)
    used = sum(load.driver_processor_seconds for load in found)
    p99 = latencies_of([each for load in found for each in load.all_latencies_seconds]).p99
    return {
        "loop": "closed",
        "connections": connections,
        "processes": len(loads),
        "requests_per_second": round(rate, 1),
        "share_of_ideal": round(rate / ideal, 3),
        "goal": GOALS.get(connections),
        "p99_milliseconds": round(p99 * MILLISECONDS, 2),
        "p99_over_delay": round(p99 * MILLISECONDS / DELAY_MILLISECONDS, 3),
        "p99_goal": MOST_P99_RATIO,
        "processor_milliseconds_per_request": round(used / answers * MILLISECONDS, 3),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures each number of connections and prints the results as JSON; returns 0."""
    parser = ExitOneParser(
        prog="python -m benchmarks.signed_driver",
        description="Measures the load driver with signed requests, against a slow server.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--connections", type=positive, nargs="+", default=list(GOALS))
    parser.add_argument("--processes", type=positive, default=1, help="of the driver")
    parser.add_argument("--seconds", type=positive, default=10, help="of each measurement")
    options = parser.parse_args(arguments)
    found = [measure(each, options.processes, options.seconds) for each in options.connections]
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
