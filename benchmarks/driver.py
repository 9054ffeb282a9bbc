"""The load driver alone, against a server that does nothing."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import pooled_latencies
from benchmarks.load import LoadSpecification, drive_from_own_process
from benchmarks.report import MILLISECONDS, Document, counted, items
from benchmarks.servers import idle_server

_SECONDS = 2.0
_WARM_UP_REQUESTS = 100


# Any: JSON.
def measure_driver(
    bodies: Sequence[str],
    concurrencies: Iterable[int],
    names: Sequence[str],
    *,
    seconds: float | None,
    log: Path,
) -> list[dict[str, Any]]:
    found = []
    with idle_server(log) as server:
        for clients in concurrencies:
            load = LoadSpecification(
                bodies=tuple(bodies),
                clients=clients,
                warm_up_requests=_WARM_UP_REQUESTS,
                seconds=seconds or _SECONDS,
            )
            try:
                result = drive_from_own_process(server.port, load)
            except BenchmarkError as error:
                raise BenchmarkError(f"the load driver: {error}") from None
            # Of the driver's processor time, the requests of the warm-up have their part.
            sent = sum(count for _, _, count in result.answers)
            used_milliseconds = result.driver_processor_seconds / sent * MILLISECONDS
            found.append(
                {
                    "clients": clients,
                    **pooled_latencies([result]).as_json(names),
                    "requests_per_second": round(result.requests_per_second, 1),
                    "processor_milliseconds_per_request": round(used_milliseconds, 3),
                }
            )
    return found


def driver_as_list(driver: Iterable[Document], high: str) -> str:
    return items(
        *(
            f"{counted(each['clients'], 'client')}: p50 {each['p50_milliseconds']:.2f} ms, {high} "
            f"{each[f'{high}_milliseconds']:.2f} ms, "
            f"{each['processor_milliseconds_per_request']:.2f} ms of processor time a request"
            for each in driver
        )
    )
