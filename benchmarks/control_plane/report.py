"""Computes medians, ratios and the verdict from trials, and makes a page of them."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from benchmarks.control_plane.design import (
    BASELINE_CONFIGS,
    COMMANDS,
    GOAL_COMMAND,
    GOAL_CONFIGS,
    HIGHEST_RATIO,
    Cell,
)
from benchmarks.estimates import Verdict, at_most, spread
from benchmarks.execution import Timing
from benchmarks.report import Document, interval, picture, result_page, rounded, table
from benchmarks.trials import Trial, results_of
from slipway.benchmarking.estimates import Estimate, ratio_of_medians


# Any: JSON.
def result(
    sizes: Sequence[int], trials: Sequence[Trial[Cell, Timing]], seed: int
) -> dict[str, Any]:
    """Returns the cells and the goal; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(seed)
    verdict, cells = Verdict.NOT_MEASURED, []
    for command in COMMANDS:
        times = {
            size: [each.seconds for each in results_of(trials, Cell(command, size))]
            for size in sizes
        }
        for size, seconds in times.items():
            # To the smallest size of the same command.
            ratio: Estimate | None = None
            if size != sizes[0]:
                ratio = ratio_of_medians(seconds, times[sizes[0]], generator)
            if ratio and (command, sizes[0], size) == (
                GOAL_COMMAND,
                BASELINE_CONFIGS,
                GOAL_CONFIGS,
            ):
                verdict = at_most(ratio, HIGHEST_RATIO)
            cells.append(_cell(Cell(command, size), trials, ratio))
    return {
        "goal": {
            "command": GOAL_COMMAND.key,
            "config_count": GOAL_CONFIGS,
            "baseline_count": BASELINE_CONFIGS,
            "highest_ratio": HIGHEST_RATIO,
            "verdict": verdict,
        },
        "cells": cells,
    }


def _cell(
    cell: Cell, trials: Sequence[Trial[Cell, Timing]], ratio: Estimate | None
) -> dict[str, Any]:
    own = [trial for trial in trials if trial.cell == cell]
    seconds = spread(trial.result.seconds for trial in own)
    used = median(trial.result.processor_seconds for trial in own)
    return {
        "command": cell.command.key,
        "typed": cell.command.typed,
        "form": cell.command.form,
        "config_count": cell.config_count,
        "median_seconds": round(seconds.median, 3),
        "lowest_seconds": round(seconds.low, 3),
        "highest_seconds": round(seconds.high, 3),
        "median_processor_seconds": round(used, 3),
        "ratio": rounded(ratio) if ratio else None,
        "trials": [{"round": trial.round, **rounded(trial.result)} for trial in own],
    }


def page(document: Document) -> str:
    """Returns the page: the goal, and the medians."""
    design = document["design"]
    return result_page(
        document,
        "What a command costs as a project grows",
        [
            goal_line(document),
            *picture(
                document,
                "benchmark-commands",
                "Seconds of cdk deploy, diff and synth by the number of configs, for one model and "
                "for every model",
            ),
            "Median wall time in seconds, by the number of model configs in the project:",
            _medians(document),
            f"Each number is the median of {design['trials']} trials, or of "
            f"{design['stated_trials']} trials for `cdk` without `-c models=NAME`. "
            "[control-plane.json](control-plane.json) has every trial.",
        ],
        f"Order: seed {design['seed']}.",
        "Everything runs against the embedded AWS.",
    )


def goal_line(document: Document) -> str:
    """Returns the verdict in one line, with its numbers."""
    verdict = document["goal"]["verdict"]
    promise = (
        f"`{GOAL_COMMAND.typed}` among {GOAL_CONFIGS} configs takes at most {HIGHEST_RATIO:g} "
        f"times as long as with {BASELINE_CONFIGS}"
    )
    if verdict == Verdict.NOT_MEASURED:
        sizes = ", ".join(map(str, document["design"]["sizes"]))
        return f"**Goal {verdict}** (sizes: {sizes}): {promise}."
    own = {
        cell["config_count"]: cell
        for cell in document["cells"]
        if cell["command"] == GOAL_COMMAND.key
    }
    large, small = own[GOAL_CONFIGS], own[BASELINE_CONFIGS]
    ratio = large["ratio"]
    return (
        f"**Goal {verdict}: {ratio['value']:.2f} times** ({_interval(ratio)}; "
        f"{large['median_seconds']:.1f} s against {small['median_seconds']:.1f} s). "
        f"The goal: {promise}."
    )


def _medians(document: Document) -> str:
    sizes = document["design"]["sizes"]
    ratio_title = [f"{sizes[-1]} : {sizes[0]}"] if len(sizes) > 1 else []
    rows = []
    for command in COMMANDS:
        own = [cell for cell in document["cells"] if cell["command"] == command.key]
        row = [f"`{command.typed}`", *(f"{cell['median_seconds']:.2f}" for cell in own)]
        if ratio := own[-1]["ratio"]:
            value = f"{ratio['value']:.2f}"
            row.append(value if ratio["low"] is None else f"{value} ({_interval(ratio)})")
        rows.append(row)
    return table(["command", *map(str, sizes), *ratio_title], rows)


def _interval(ratio: Document) -> str:
    return interval(ratio) if ratio["low"] is None else f"95 %: {interval(ratio)}"
