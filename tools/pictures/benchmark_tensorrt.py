"""The TensorRT container's requests per second on a CPU, beside the published layout's."""

from typing import Any

from tools.pictures.kit.lines import Lines, Panel, Series, Value
from tools.pictures.kit.results import results
from tools.pictures.kit.style import Tone

_RESULTS = results("tensorrt")
# Each system's label, tone, and whether its line is dashed.
_SYSTEMS: dict[str, tuple[str, Tone, bool]] = {
    "slipway": ("Slipway", "accent", False),
    "slipway-static": ("Slipway, static\nbatching", "accent", True),
    "bare-loop": ("bare decode loop", "plain", True),
    "pytorch-cached": ("published layout\nwith a cache", "plain", False),
    "pytorch-uncached": ("published layout", "plain", True),
}


def _panel(model: dict[str, Any], workload: dict[str, Any], title: str) -> Panel:
    cells = [cell for cell in model["cells"] if cell["workload"] == workload["name"]]
    series = []
    for system in workload["systems"]:
        label, tone, dashed = _SYSTEMS[system]
        values = [_value(cell) for cell in cells if cell["system"] == system]
        series.append(Series(label, values, tone, dashed))
    places = [str(count) for count in workload["concurrencies"]]
    return Panel(title, "requests per second", places, series)


def _value(cell: dict[str, Any]) -> Value:
    trials = [trial["requests_per_second"] for trial in cell["trials"]]
    low, high = (min(trials), max(trials)) if len(trials) > 1 else (None, None)
    return Value(str(cell["concurrency"]), cell["requests_per_second"], low, high)


def _picture(model: dict[str, Any], title: str) -> Lines:
    batch, single = (
        next(each for each in _RESULTS["design"]["workloads"] if each["name"] == name)
        for name in ("batch", "mixed")
    )
    return Lines(
        name=f"benchmark-tensorrt-{model['model']}",
        title=f"{title}: requests per second of the TensorRT container on a CPU",
        description=(
            "Requests per second by the number of clients, for Slipway's container and for the "
            "published layout with and without a key-value cache."
        ),
        place_title="clients",
        columns=2,
        label_width=116,
        panels=[
            _panel(model, batch, f"{batch['texts']} texts a request"),
            _panel(model, single, "1 text a request"),
        ],
        note=(
            "A point with an upright line is of several trials, and the line goes from the lowest "
            "to the highest. The other points are of one trial."
        ),
    )


PICTURES = [
    _picture(model, described["title"])
    for model, described in zip(_RESULTS["models"], _RESULTS["design"]["models"], strict=True)
]
