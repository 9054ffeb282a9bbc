"""Computes rates, ratios and verdicts from trials, and makes a page of them."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.estimates import at_least, at_most, spread
from benchmarks.publish.design import (
    CELLS,
    GIGABYTE,
    LEAST_RATIOS,
    MEGABYTE,
    MOST_SECONDS,
    Cell,
    Size,
    Way,
    Work,
)
from benchmarks.publish.tree import Measured
from benchmarks.report import (
    Document,
    estimated,
    goals_line,
    result_page,
    rounded,
    significant,
    table,
)
from benchmarks.trials import Trial, results_of
from slipway.benchmarking.estimates import estimate_of_median, ratio_of_medians


# Any: JSON.
def result(trials: Sequence[Trial[Cell, Measured]], seed: int) -> dict[str, Any]:
    """Returns the goals and the cells; the same trials and seed give the same numbers."""
    return {"goals": _goals(trials, seed), "cells": [_cell(cell, trials) for cell in CELLS]}


def _goals(trials: Sequence[Trial[Cell, Measured]], seed: int) -> list[dict[str, Any]]:
    generator = np.random.default_rng(seed)
    seconds = {cell: [each.seconds for each in results_of(trials, cell)] for cell in CELLS}
    goals = []
    for work in Work:
        own = seconds[Cell(work, Way.PUBLISH)]
        if not work.is_upload:
            found = estimate_of_median(own, generator)
            verdict, limit = at_most(found, MOST_SECONDS), {"most_seconds": MOST_SECONDS}
            goals.append(_goal(work, None, limit, rounded(found), verdict))
            continue
        for way, least in LEAST_RATIOS.items():
            # The same bytes: the ratio of the rates is the inverse ratio of the times.
            ratio = ratio_of_medians(seconds[Cell(work, way)], own, generator)
            limit = {"least_ratio": least}
            goals.append(_goal(work, way, limit, rounded(ratio), at_least(ratio, least)))
    return goals


def _goal(
    work: Work, baseline: Way | None, limit: Mapping[str, float], found: object, verdict: str
) -> dict[str, Any]:
    return {"work": work, "baseline": baseline, **limit, "found": found, "verdict": verdict}


def _cell(cell: Cell, trials: Sequence[Trial[Cell, Measured]]) -> dict[str, Any]:
    own = [trial for trial in trials if trial.cell == cell]
    return {
        "work": cell.work,
        "way": cell.way,
        "seconds": rounded(spread(trial.result.seconds for trial in own)),
        "peak_bytes": max(trial.result.peak_bytes for trial in own),
        "trials": [
            {
                "round": trial.round,
                "seconds": round(trial.result.seconds, 3),
                "peak_bytes": trial.result.peak_bytes,
            }
            for trial in own
        ],
    }


def page(document: Document) -> str:
    """Returns the page: the goals, and every measurement."""
    design = document["design"]
    sizes = {Work(work): Size(**size) for work, size in design["sizes"].items()}
    rows = [
        [
            _named(sizes, cell["work"]),
            f"`{cell['way']}`",
            significant(seconds["median"]),
            f"{significant(seconds['low'])} to {significant(seconds['high'])}",
            _rate(sizes, Work(cell["work"]), seconds["median"]),
            significant(cell["peak_bytes"] / MEGABYTE),
        ]
        for cell in document["cells"]
        for seconds in [cell["seconds"]]
    ]
    goals = [
        [
            _named(sizes, goal["work"]),
            f"rate / `{goal['baseline']}`" if goal["baseline"] else "seconds",
            estimated(goal["found"]),
            f"at least {goal['least_ratio']:g}"
            if goal["baseline"]
            else f"at most {goal['most_seconds']:g}",
            goal["verdict"],
        ]
        for goal in document["goals"]
    ]
    total = sizes[Work.PREFIX].total_bytes / GIGABYTE
    return result_page(
        document,
        "Publishing files",
        [
            "`slipway publish` beside `s5cmd cp` and `aws s3 sync`, to an S3 server on the same "
            "machine. No network and no AWS took part.",
            goals_line(goal["verdict"] for goal in document["goals"]),
            table(["files", "measured", "found", "goal", "verdict"], goals),
            f"A publish that sends nothing may take {MOST_SECONDS:g} s, the start of the command "
            f"included. The large prefix has {total:g} GB, all of which has arrived without the "
            "manifest. Publishing lists it, finds nothing to send and writes manifest and lock.",
            "## Every measurement",
            table(["files", "program", "seconds", "range", "MB/s", "peak MB"], rows),
            "[publish.json](publish.json) has every trial.",
        ],
        f"Order: seed {design['seed']}. {design['trials']} trials of each row, alternating.",
        "The server takes its share of the processor from the program that is measured.",
        "The peak is of the program and its children together, without the server.",
        "The large prefix has sparse files and made-up hashes. No byte of them is read.",
    )


def _named(sizes: Mapping[Work, Size], work: str) -> str:
    size = sizes[Work(work)]
    unit = (
        f"{size.file_bytes / 1000:g} kB"
        if size.file_bytes < MEGABYTE
        else f"{size.file_bytes / MEGABYTE:g} MB"
    )
    return f"{work}: {size.file_count:,} of {unit}"


def _rate(sizes: Mapping[Work, Size], work: Work, seconds: float) -> str:
    if not work.is_upload:
        return ""
    return significant(sizes[work].total_bytes / MEGABYTE / seconds)
