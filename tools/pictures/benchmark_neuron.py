"""The Neuron container's sentences per second on a CPU, and its goals."""

from collections.abc import Iterator
from typing import Any

from tools.pictures.kit import bars, lines
from tools.pictures.kit.results import results
from tools.pictures.kit.style import Tone

_RESULTS = results("neuron")
_TITLES = {model["name"]: model["title"] for model in _RESULTS["design"]["models"]}
_MIXED = _RESULTS["design"]["workloads"][0]
_GOAL = max(goal["least_throughput_ratio"] for goal in _RESULTS["goals"])
_TONES: dict[str, Tone] = {"met": "accent", "met by the medians only": "plain", "not met": "warn"}


def _goal_rows(key: str) -> Iterator[tuple[str, list[bars.Row]]]:
    for name, title in _TITLES.items():
        rows = []
        for goal in _RESULTS["goals"]:
            if goal["model"] != name:
                continue
            ratio, verdict = goal[f"{key}_ratio"], goal[f"{key}_verdict"]
            workers = "1 worker" if goal["workers"] == 1 else f"{goal['workers']} workers"
            own = goal.get(f"least_{key}_ratio", 0.0)
            if own and own != _GOAL:
                workers += f", goal {own:g}"
            rows.append(
                bars.Row(
                    f"batch {goal['batch_size']}, {workers}",
                    ratio["value"],
                    f"{ratio['value']:.2f}, {verdict}",
                    ratio["low"],
                    ratio["high"],
                    _TONES[verdict],
                )
            )
        yield _capitalized(title), rows


def _goals() -> bars.Bars:
    least, most = _GOAL, _RESULTS["goals"][0]["most_p95_ratio"]
    return bars.Bars(
        name="benchmark-neuron-goals",
        title="The Neuron container's goals on a CPU, with their intervals",
        description=(
            "Ratios of the container to a naive TorchScript server, for BERT-base and for the "
            "small sample, by batch size and number of workers."
        ),
        panels=[
            bars.Panel(
                "Sentences per second, of the naive server's: more is better",
                "ratio at 16 clients",
                list(_goal_rows("throughput")),
                goal=least,
                goal_text=f"goal: at least {least:g}",
                points=True,
            ),
            bars.Panel(
                "p95 of a request, of the naive server's: less is better",
                "ratio at 16 clients",
                list(_goal_rows("p95")),
                goal=most,
                goal_text=f"goal: at most {most:g}",
                points=True,
            ),
        ],
        label_width=184,
        value_width=190,
        note="Lines through the points are 95 % intervals.",
    )


def _panel(model: dict[str, Any], workers: int) -> lines.Panel:
    wanted: list[tuple[str, Tone, bool, dict[str, Any]]] = [
        ("Slipway, batch 6", "accent", False, {"system": "slipway", "batch_size": 6}),
        ("Slipway, batch 1", "accent", True, {"system": "slipway", "batch_size": 1}),
        ("TorchScript", "plain", False, {"system": "torchscript"}),
    ]
    series = []
    for label, tone, dashed, fields in wanted:
        wanted_fields = {"workload": _MIXED["name"], "workers": workers, **fields}
        values = [_value(cell) for cell in model["cells"] if wanted_fields.items() <= cell.items()]
        series.append(lines.Series(label, values, tone, dashed))
    title = _capitalized(_TITLES[model["model"]])
    return lines.Panel(
        f"{title}, {workers} worker{'s' if workers > 1 else ''}",
        "sentences per second",
        [str(count) for count in _MIXED["concurrencies"]],
        series,
    )


def _value(cell: dict[str, Any]) -> lines.Value:
    trials = [trial["sentences_per_second"] for trial in cell["trials"]]
    low, high = (min(trials), max(trials)) if len(trials) > 1 else (None, None)
    return lines.Value(str(cell["concurrency"]), cell["sentences_per_second"], low, high)


def _capitalized(text: str) -> str:
    return text[0].upper() + text[1:]


PICTURES = [
    lines.Lines(
        name="benchmark-neuron",
        title="Sentences per second of the Neuron container on a CPU",
        description=(
            "Sentences per second by the number of clients, for BERT-base and the small sample, "
            "with one worker and with two, beside a naive TorchScript server."
        ),
        place_title="clients",
        columns=2,
        label_width=118,
        panels=[
            _panel(model, workers) for model in _RESULTS["models"] for workers in _MIXED["workers"]
        ],
        note=(
            "Questions as they come. A point with an upright line is of several trials, and the "
            "line goes from the lowest to the highest."
        ),
    ),
    _goals(),
]
