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

from benchmarks.estimates import pooled_latencies
from benchmarks.load import LoadSpecification, drive_through
from benchmarks.program import ExitOneParser, positive
from benchmarks.report import MILLISECONDS
from benchmarks.servers import idle_server
from slipway.benchmarking.connections import Connection
from slipway.benchmarking.self_test import DELAY_MILLISECONDS
from slipway.benchmarking.signed import SignedRequests

# Connections -> least share of the ideal rate.
GOALS: Final = {64: 0.95, 128: 0.90}
MOST_P99_RATIO: Final = 1.10

_BODIES: Final = tuple(json.dumps({"inputs": f"request {number}"}) for number in range(64))


def measure(connections: int, seconds: float) -> dict[str, Any]:
    load = LoadSpecification(_BODIES, connections, warm_up_seconds=1.0, seconds=seconds)
    with (
        tempfile.TemporaryDirectory() as folder,
        idle_server(Path(folder) / "log", DELAY_MILLISECONDS) as server,
    ):
        url = f"http://127.0.0.1:{server.port}/endpoints/stub/invocations"
        credentials = ReadOnlyCredentials("AKIDEXAMPLE", "example", None)
        requests = SignedRequests(url, "us-east-1", lambda: credentials)
        found = drive_through(partial(Connection, url, load.timeout_seconds), load, requests.of)
    answers = sum(count for *_, count in found.answers)
    p99 = pooled_latencies([found]).p99 * MILLISECONDS
    ideal = connections / DELAY_MILLISECONDS * MILLISECONDS
    return {
        "loop": "closed",
        "connections": connections,
        "requests_per_second": round(found.requests_per_second, 1),
        "share_of_ideal": round(found.requests_per_second / ideal, 3),
        "goal": GOALS.get(connections),
        "p99_milliseconds": round(p99, 2),
        "p99_over_delay": round(p99 / DELAY_MILLISECONDS, 3),
        "p99_goal": MOST_P99_RATIO,
        "processor_milliseconds_per_request": round(
            found.driver_processor_seconds / answers * MILLISECONDS, 3
        ),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    parser = ExitOneParser(
        prog="python -m benchmarks.signed_driver",
        description="Measures the load driver with signed requests, against a slow server.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--connections", type=positive, nargs="+", default=list(GOALS))
    parser.add_argument("--seconds", type=positive, default=10, help="of each measurement")
    options = parser.parse_args(arguments)
    print(json.dumps([measure(each, options.seconds) for each in options.connections], indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
