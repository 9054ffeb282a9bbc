"""The GPUs, the fitted constants, and how far predictions may be off.

`facts/gpus.json` has what makers say. `python -m benchmarks.sizing --write` fits
`facts/sizing.json` to public rows, and says in it what was measured.
"""

import functools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from slipway.facts.instances import instance_types
from slipway.facts.tables import read_table
from slipway.sizing.latency import Constants, Gpu, Server
from slipway.sizing.network import Network

# A prediction is near a measurement on the same GPUs, up to this factor away from it.
_NEAR_SIZE, _NEAR_CONCURRENCY = 4.0, 2.0


NEARBY: Final = "measured nearby"
EXTRAPOLATED: Final = "extrapolated"


@dataclass(frozen=True)
class Band:
    """How far a time may be off: so many times longer, or as many times shorter."""

    factor: float
    basis: str


@functools.cache
def _sizing() -> Mapping[str, Any]:
    return read_table("sizing.json")


def constants() -> Constants:
    values: Constants = _sizing()["constants"]
    return values


@functools.cache
def gpu_of(instance_type: str) -> Gpu | None:
    """Returns the GPU of an instance type; None if nothing is known of its speed."""
    instance = instance_types().get(instance_type)
    accelerator = instance.accelerator if instance else None
    row = read_table("gpus.json")["gpus"].get(accelerator.product) if accelerator else None
    # Another size of memory is another memory.
    if accelerator is None or row is None or row["memory_gib"] != accelerator.memory_gib:
        return None
    return Gpu(accelerator.product, row["gb_per_second"] * 1e9, row["tflops"] * 1e12, row["link"])


def unmeasured(server: Server) -> str | None:
    """Returns why nothing can be predicted, as half a sentence; None if it can."""
    rows = _sizing()["measured"]
    if server.engine not in {row["engine"] for row in rows}:
        return f"no measurement is of {server.engine}"
    if server.gpu.product not in {row["gpu"] for row in rows}:
        return f"no measurement is on {server.gpu.product}"
    return None


def band_of(network: Network, server: Server, concurrency: int) -> Band:
    """Returns how far a predicted time may be off, by rows that a fit without them predicted."""
    near = is_measured_nearby(_sizing()["measured"], network, server, concurrency)
    basis = NEARBY if near else EXTRAPOLATED
    return Band(math.exp(width_of(_sizing()["bands"], network, server, basis)), basis)


def width_of(bands: Mapping[str, Any], network: Network, server: Server, basis: str) -> float:
    """Returns the width of a band as a logarithm."""
    if network.kind != ("dense", "plain"):
        width: float = bands["other"][basis]
        return width
    on = f"{server.engine} on {server.gpu.product}"
    return float(bands["wider"].get(on, bands["dense"]))


def corrected_width(network: Network, *, is_same: bool) -> float:
    """Returns the width of a band, as a logarithm, after one measurement corrected the time.

    `is_same` says whether the same instance type and degree were measured, and not only the GPU.
    """
    widths = _sizing()["bands"]["corrected"]["type" if is_same else "gpu"]
    return float(widths["dense" if network.kind == ("dense", "plain") else "other"])


def is_measured_nearby(
    rows: Iterable[Mapping[str, Any]], network: Network, server: Server, concurrency: int
) -> bool:
    """Returns whether a row is of the same engine, GPUs, degree and kind, and about as large."""
    same = [server.engine, server.gpu.product, server.degree, list(network.kind)]
    return any(
        same == [row["engine"], row["gpu"], row["degree"], row["kind"]]
        and row["parameters"] / _NEAR_SIZE <= network.parameters <= row["parameters"] * _NEAR_SIZE
        and concurrency <= row["concurrency"] * _NEAR_CONCURRENCY
        for row in rows
    )
