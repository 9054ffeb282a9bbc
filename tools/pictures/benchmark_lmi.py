"""DJL Serving beside Slipway's serving core, and a prefix beside a tar.gz."""

from collections.abc import Callable
from typing import Any

from benchmarks.report import significant
from tools.pictures.kit.bars import Bars, Panel, Row
from tools.pictures.kit.results import results

_RESULTS = results("lmi")
_SYSTEMS = {
    "slipway": "Slipway's core, shared batches",
    "slipway-single": "Slipway's core, one at a time",
    "djl-graph": "DJL Serving, same graph, its batches",
    "djl-graph-single": "DJL Serving, same graph, one at a time",
    "djl-transformers": "DJL Serving, its own handler, PyTorch",
    "djl-transformers-batches": "DJL Serving, its own handler, its batches",
}
_WAYS = {
    "s5cmd-sync": "prefix, `s5cmd sync`",
    "s5cmd-copy": "prefix, `s5cmd run` of `cp`",
    "tar-streamed": "tar.gz, extracted while it arrives",
    "tar-stored": "tar.gz, to a file, then extracted",
}


def _systems(title: str, unit: str, read: Callable[[dict[str, Any]], dict[str, float]]) -> Panel:
    rows = []
    for system in _RESULTS["serving"]["systems"]:
        found = read(system)
        rows.append(
            Row(
                _SYSTEMS[system["system"]],
                found["median"],
                significant(found["median"]),
                found["low"],
                found["high"],
                "accent" if system["system"].startswith("slipway") else "plain",
            )
        )
    return Panel(title, unit, [("", rows)])


def _load(system: dict[str, Any], clients: int) -> dict[str, float]:
    found: dict[str, float] = next(
        load["requests_per_second"] for load in system["loads"] if load["clients"] == clients
    )
    return found


def _transfers() -> Panel:
    rows = []
    for transfer in _RESULTS["weights"]["transfers"]:
        found = transfer["seconds"]
        is_prefix = transfer["way"].startswith("s5cmd")
        content = {"random": "random bytes", "float32": "float32 values"}[transfer["content"]]
        label = _WAYS[transfer["way"]]
        rows.append(
            Row(
                label if is_prefix else f"{label}: {content}",
                found["median"],
                f"{significant(found['median'])} s",
                found["low"],
                found["high"],
                "accent" if is_prefix else "plain",
            )
        )
    return Panel("2 GB of weights to the disk: less is better", "seconds", [("", rows)])


_RANGE = "Lines at the bars' ends go from the lowest trial to the highest trial."
PICTURES = [
    Bars(
        name="benchmark-lmi",
        title="DJL Serving beside Slipway's serving core, with a small model on a CPU",
        description=(
            "Requests per second of one client and of eight, and the seconds until a server is "
            "ready, for Slipway's core and DJL Serving with the same model."
        ),
        panels=[
            _systems(
                "Requests per second, 8 clients: more is better",
                "requests per second",
                lambda system: _load(system, 8),
            ),
            _systems(
                "Requests per second, 1 client: more is better",
                "requests per second",
                lambda system: _load(system, 1),
            ),
            _systems(
                "Time until the server is ready: less is better",
                "seconds",
                lambda system: dict(system["ready_seconds"]),
            ),
        ],
        label_width=276,
        value_width=60,
        note=_RANGE,
    ),
    Bars(
        name="benchmark-weights",
        title="Weights from a local S3: a prefix beside a tar.gz",
        description="Seconds until 2 GB of weights are on the disk, by how they are fetched.",
        panels=[_transfers()],
        label_width=330,
        value_width=64,
        note=_RANGE,
    ),
]
