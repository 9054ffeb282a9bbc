"""The load driver alone, against a server that does nothing."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.load import LoadResult, LoadSpecification, drive_from_own_process
from benchmarks.report import MILLISECONDS, counted, items
from benchmarks.servers import idle_server, server_variables
from benchmarks.summary import latencies_of

CLOSED_LOOP = (
    "The load is a closed loop: a client sends again after its answer. Stalls of a server are "
    "therefore rare in p95 and p99."
)
"""The note of every report whose loads are `LoadSpecification`s."""

_SECONDS = 2.0
_WARM_UP_REQUESTS = 100

Driver = Mapping[int, LoadResult]
"""Measurements of the load driver, by its number of clients."""


def measure_driver(
    bodies: Sequence[str], concurrencies: Sequence[int], seconds: float | None, log: Path
) -> Driver:
    """Measures the load driver with each number of clients.

    Args:
        bodies: the requests of the benchmark.
        concurrencies: the numbers of clients.
        seconds: time of each measurement; None takes the usual time.
        log: file for the idle server's output.

    Raises:
        BenchmarkError: a request failed.
    """
    with idle_server(log, server_variables(os.environ)) as server:
        try:
            return {
                clients: drive_from_own_process(
                    server.port,
                    LoadSpecification(
                        bodies=tuple(bodies),
                        clients=clients,
                        warm_up_requests=_WARM_UP_REQUESTS,
                        seconds=seconds or _SECONDS,
                    ),
                )
                for clients in concurrencies
            }
        except BenchmarkError as error:
            raise BenchmarkError(f"the load driver: {error}") from None


def driver_as_json(driver: Driver, names: Sequence[str]) -> list[dict[str, Any]]:
    """Returns the measurements; `names` are the latencies' figures."""
    return [
        {
            "clients": clients,
            **latencies_of(load.all_latencies_seconds).as_json(names),
            "requests_per_second": round(load.requests_per_second, 1),
            "processor_milliseconds_per_request": round(_processor_milliseconds(load), 3),
        }
        for clients, load in driver.items()
    ]


def driver_as_list(driver: Driver, high: str) -> str:
    """Returns the measurements as a list; `high` is the figure beside the p50."""
    return items(
        *(
            f"{counted(clients, 'client')}: p50 {found.p50 * MILLISECONDS:.2f} ms, {high} "
            f"{getattr(found, high) * MILLISECONDS:.2f} ms, "
            f"{_processor_milliseconds(load):.2f} ms of processor time a request"
            for clients, load in driver.items()
            for found in [latencies_of(load.all_latencies_seconds)]
        )
    )


def _processor_milliseconds(load: LoadResult) -> float:
    """Returns the processor time of the load driver per request, warm-up included."""
    sent = sum(count for _, _, count in load.answers)
    return load.driver_processor_seconds / sent * MILLISECONDS
