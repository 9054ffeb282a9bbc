"""The plots of the benchmarks, from their committed results in benchmarks/results."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.report import significant
from benchmarks.sizing.report import RESULTS
from tools.pictures.bars import Panel, Row, bars_picture
from tools.pictures.lines import Series, Value, lines_picture
from tools.pictures.scatter import Point, scatter_picture

_FOLDER = Path(__file__).parents[2] / "benchmarks" / "results"


def plots() -> dict[str, str]:
    """Returns each plot as an SVG document, by the name of its file without the ending."""
    tensorrt = _results("tensorrt")
    return {
        "benchmark-commands": _commands(_results("control-plane")),
        "benchmark-tensorrt-gpt2-124m": _tensorrt(tensorrt, "gpt2-124m"),
        "benchmark-tensorrt-gpt2-autocomplete": _tensorrt(tensorrt, "gpt2-autocomplete"),
        "benchmark-triton": _triton(_results("triton")),
        "benchmark-neuron": _neuron(_results("neuron")),
        "benchmark-neuron-goals": _neuron_goals(_results("neuron")),
        "benchmark-lmi": _lmi(_results("lmi")),
        "benchmark-weights": _weights(_results("lmi")),
        "sizing": _sizing(json.loads(RESULTS.read_text("utf-8"))),
    }


def _results(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((_FOLDER / f"{name}.json").read_text("utf-8"))
    return found


def _series(
    cells: list[dict[str, Any]], label: str, classes: str, names: tuple[str, str], **fields: object
) -> Series:
    """Returns a line: the number and the value of each cell with these fields, with its trials."""
    number, rate = names
    values = []
    for cell in _matching(cells, **fields):
        trials = [trial[rate] for trial in cell["trials"]]
        values.append(Value(cell[number], cell[rate], min(trials), max(trials)))
    return Series(label, values, classes)


def _matching(cells: list[dict[str, Any]], **fields: object) -> list[dict[str, Any]]:
    return [cell for cell in cells if fields.items() <= cell.items()]


def _commands(results: dict[str, Any]) -> str:
    def series(words: str, classes: str) -> Iterator[Series]:
        for verb in ("deploy", "diff", "synth"):
            values = [
                Value(cell["config_count"], found["median"], found["low"], found["high"])
                for cell in _matching(results["cells"], typed=f"cdk {verb} NAME{words}")
                for found in [cell["readings"]["seconds"]]
            ]
            yield Series(verb, values, classes)

    return lines_picture(
        "Seconds of the CDK's commands, by the number of model configs",
        "Median seconds of cdk deploy, cdk diff and cdk synth, for one model with -c models=NAME "
        "and for every model.",
        {
            "One model: `-c models=NAME`": list(series(" -c models=NAME", "accent")),
            "Every model": list(series("", "")),
        },
        unit="seconds",
        numbers_title="model configs in the project",
        label_width=58,
        note="Points are medians. Upright lines go from the shortest trial to the longest trial.",
        is_one_axis=True,
    )


def _tensorrt(results: dict[str, Any], name: str) -> str:
    labels = {
        "slipway": ("Slipway", "accent"),
        "slipway-static": ("Slipway, static\nbatching", "accent dashed"),
        "bare-loop": ("bare decode loop", "dashed"),
        "pytorch-cached": ("published layout\nwith a cache", ""),
        "pytorch-uncached": ("published layout", "dashed"),
    }
    [model] = _matching(results["models"], model=name)
    [described] = _matching(results["design"]["models"], name=name)
    panels = {}
    names = ("concurrency", "requests_per_second")
    for name, title in (("batch", "{texts} texts a request"), ("mixed", "1 text a request")):
        [workload] = _matching(results["design"]["workloads"], name=name)
        panels[title.format(**workload)] = [
            _series(model["cells"], *labels[system], names, workload=name, system=system)
            for system in workload["systems"]
        ]
    return lines_picture(
        f"{described['title']}: requests per second of the TensorRT container on a CPU",
        "Requests per second by the number of clients, for Slipway's container and for the "
        "published layout with and without a key-value cache.",
        panels,
        unit="requests per second",
        numbers_title="clients",
        label_width=116,
        note="A point with an upright line is of several trials, and the line goes from the "
        "lowest to the highest. The other points are of one trial.",
    )


def _triton(results: dict[str, Any]) -> str:
    labels = {
        "triton": ("Slipway\non Triton", "accent"),
        "serving-core": ("serving core", "dashed"),
        "triton-unbatched": ("without batches", "accent dashed"),
        "triton-generate": ("generate\nper request", ""),
    }
    panels = {}
    names = ("clients", "requests_per_second")
    for copies, title in ((1, "1 copy of the model"), (2, "2 copies of the model")):
        panels[title] = [
            _series(
                results["cells"],
                *labels[system],
                names,
                system=system,
                copies=1 if system == "serving-core" else copies,
            )
            for system in labels
        ]
    return lines_picture(
        "Requests per second of a small T5 on a CPU",
        "Requests per second by the number of clients: Slipway's model on Triton with batches and "
        "without, the same graphs in Slipway's serving core, and generate of transformers for "
        "each request on Triton.",
        panels,
        unit="requests per second",
        numbers_title="clients",
        label_width=130,
        note="A T5 of 1.0 million parameters. The serving core always has one copy. Upright lines "
        "go from the lowest trial to the highest.",
    )


def _neuron(results: dict[str, Any]) -> str:
    mixed = results["design"]["workloads"][0]
    systems: list[tuple[str, str, dict[str, Any]]] = [
        ("Slipway, batch 6", "accent", {"system": "slipway", "batch_size": 6}),
        ("Slipway, batch 1", "accent dashed", {"system": "slipway", "batch_size": 1}),
        ("TorchScript", "", {"system": "torchscript"}),
    ]
    panels = {}
    names = ("concurrency", "sentences_per_second")
    for model, described in zip(results["models"], results["design"]["models"], strict=True):
        for workers in mixed["workers"]:
            shared = {"workload": mixed["name"], "workers": workers}
            panels[f"{_capitalized(described['title'])}, {_workers(workers)}"] = [
                _series(model["cells"], label, classes, names, **shared, **fields)
                for label, classes, fields in systems
            ]
    return lines_picture(
        "Sentences per second of the Neuron container on a CPU",
        "Sentences per second by the number of clients, for BERT-base and the small sample, with "
        "one worker and with two, beside a naive TorchScript server.",
        panels,
        unit="sentences per second",
        numbers_title="clients",
        label_width=118,
        note="Questions as they come. A point with an upright line is of several trials, and the "
        "line goes from the lowest to the highest.",
    )


def _neuron_goals(results: dict[str, Any]) -> str:
    goals = results["goals"]
    most = goals[0]["most_p95_ratio"]
    least = max(goal["least_throughput_ratio"] for goal in goals)
    tones = {"met": "accent", "met by the medians only": "", "not met": "warn"}

    def row(goal: dict[str, Any], key: str) -> Row:
        ratio, verdict = goal[f"{key}_ratio"], goal[f"{key}_verdict"]
        label = f"batch {goal['batch_size']}, {_workers(goal['workers'])}"
        own = goal.get(f"least_{key}_ratio", least)
        if own not in (0, least):
            label += f", goal {own:g}"
        shown = f"{ratio['value']:.2f}, {verdict}"
        return Row(label, ratio["value"], ratio["low"], ratio["high"], shown, tones[verdict])

    def groups(key: str) -> dict[str, list[Row]]:
        return {
            _capitalized(model["title"]): [
                row(goal, key) for goal in _matching(goals, model=model["name"])
            ]
            for model in results["design"]["models"]
        }

    return bars_picture(
        "The Neuron container's goals on a CPU, with their intervals",
        "Ratios of the container to a naive TorchScript server, for BERT-base and for the small "
        "sample, by batch size and number of workers.",
        [
            Panel(
                "Sentences per second, of the naive server's: more is better",
                "ratio at 16 clients",
                groups("throughput"),
                (least, f"goal: at least {least:g}"),
            ),
            Panel(
                "p95 of a request, of the naive server's: less is better",
                "ratio at 16 clients",
                groups("p95"),
                (most, f"goal: at most {most:g}"),
            ),
        ],
        label_width=184,
        value_width=190,
        note="Lines through the points are 95 % intervals.",
    )


_TRIALS = "Lines at the bars' ends go from the lowest trial to the highest trial."


def _bar(label: str, found: dict[str, float], unit: str, *, is_slipway: bool) -> Row:
    median = found["median"]
    shown = f"{significant(median)}{unit}"
    return Row(label, median, found["low"], found["high"], shown, "accent" if is_slipway else "")


def _lmi(results: dict[str, Any]) -> str:
    labels = {
        "slipway": "Slipway's core, shared batches",
        "slipway-single": "Slipway's core, one at a time",
        "djl-graph": "DJL Serving, same graph, its batches",
        "djl-graph-single": "DJL Serving, same graph, one at a time",
        "djl-transformers": "DJL Serving, its own handler, PyTorch",
        "djl-transformers-batches": "DJL Serving, its own handler, its batches",
    }

    def panel(title: str, unit: str, read: Callable[[dict[str, Any]], dict[str, float]]) -> Panel:
        rows = [
            _bar(labels[name], read(system), "", is_slipway=name.startswith("slipway"))
            for system in results["serving"]["systems"]
            for name in [system["system"]]
        ]
        return Panel(title, unit, {"": rows})

    def rates(clients: int) -> Panel:
        def read(system: dict[str, Any]) -> dict[str, float]:
            [load] = _matching(system["loads"], clients=clients)
            return dict(load["requests_per_second"])

        of_clients = "1 client" if clients == 1 else f"{clients} clients"
        title = f"Requests per second, {of_clients}: more is better"
        return panel(title, "requests per second", read)

    return bars_picture(
        "DJL Serving beside Slipway's serving core, with a small model on a CPU",
        "Requests per second of one client and of eight, and the seconds until a server is ready, "
        "for Slipway's core and DJL Serving with the same model.",
        [
            rates(8),
            rates(1),
            panel(
                "Time until the server is ready: less is better",
                "seconds",
                lambda system: dict(system["ready_seconds"]),
            ),
        ],
        label_width=276,
        value_width=60,
        note=_TRIALS,
    )


def _weights(results: dict[str, Any]) -> str:
    labels = {
        "s5cmd-sync": "prefix, `s5cmd sync`",
        "s5cmd-copy": "prefix, `s5cmd run` of `cp`",
        "tar-streamed": "tar.gz, extracted while it arrives",
        "tar-stored": "tar.gz, to a file, then extracted",
    }
    contents = {"random": "random bytes", "float32": "float32 values"}
    rows = []
    for transfer in results["weights"]["transfers"]:
        is_prefix = transfer["way"].startswith("s5cmd")
        label = labels[transfer["way"]]
        if not is_prefix:
            label += f": {contents[transfer['content']]}"
        rows.append(_bar(label, transfer["readings"]["seconds"], " s", is_slipway=is_prefix))
    return bars_picture(
        "Weights from a local S3: a prefix beside a tar.gz",
        "Seconds until 2 GB of weights are on the disk, by how they are fetched.",
        [Panel("2 GB of weights to the disk: less is better", "seconds", {"": rows})],
        label_width=330,
        value_width=64,
        note=_TRIALS,
    )


def _workers(count: int) -> str:
    return "1 worker" if count == 1 else f"{count} workers"


def _capitalized(title: str) -> str:
    return title[0].upper() + title[1:]


def _sizing(results: dict[str, Any]) -> str:
    rows = results["held_out"]
    return scatter_picture(
        "Predicted and measured seconds of requests, for every held-out row",
        "Predicted against measured seconds of the median request, on logarithmic axes.",
        {
            title: [
                Point(row["measured_seconds"], row["predicted_seconds"], row["model"])
                for row in _matching(rows, dense=is_dense)
            ]
            for title, is_dense in (("Dense models", True), ("Experts, or quantised", False))
        },
        x_title="measured seconds",
        y_title="predicted seconds",
        note="A point on the line is predicted exactly. The dashed lines are 30 % away from it, "
        "and 40 % in the right half. No constant was fitted to these models on these types.",
        limits=(0.3, 0.4),
    )
