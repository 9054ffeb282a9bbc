"""Computes rates, ratios and verdicts from trials, and makes a page of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.estimates import cells_as_json, goal, goals_section
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
from benchmarks.publish.session import Measured
from benchmarks.report import (
    Document,
    result_page,
    significant,
    table,
)
from benchmarks.trials import Trial, results_of
from slipway.benchmarking.estimates import estimate_of_median, ratio_of_medians


# Any: JSON.
def result(trials: Sequence[Trial[Cell, Measured]], seed: int) -> dict[str, Any]:
    return {
        "goals": list(_goals(trials, np.random.default_rng(seed))),
        "cells": cells_as_json(CELLS, trials, vars),
    }


def _goals(
    trials: Sequence[Trial[Cell, Measured]], generator: np.random.Generator
) -> Iterator[dict[str, Any]]:
    seconds = {cell: [each.seconds for each in results_of(trials, cell)] for cell in CELLS}
    for work in Work:
        own = seconds[Cell(work, Way.PUBLISH)]
        if not work.is_upload:
            yield goal(work, estimate_of_median(own, generator), most=MOST_SECONDS, unit="s")
            continue
        for way, least in LEAST_RATIOS.items():
            # The same bytes: the ratio of the rates is the inverse ratio of the times.
            ratio = ratio_of_medians(seconds[Cell(work, way)], own, generator)
            yield goal(f"{work}: rate, in times of `{way}`", ratio, least=least)


def page(document: Document) -> str:
    design = document["design"]
    sizes = {Work(work): Size(**size) for work, size in design["sizes"].items()}
    rows = [
        [
            _named(sizes, cell["work"]),
            f"`{cell['way']}`",
            significant(seconds["median"]),
            f"{significant(seconds['low'])} to {significant(seconds['high'])}",
            _rate(sizes, Work(cell["work"]), seconds["median"]),
            significant(cell["readings"]["peak_bytes"]["high"] / MEGABYTE),
        ]
        for cell in document["cells"]
        for seconds in [cell["readings"]["seconds"]]
    ]
    total = sizes[Work.PREFIX].total_bytes / GIGABYTE
    return result_page(
        document,
        "Publishing files",
        [
            "`slipway publish` beside `s5cmd cp` and `aws s3 sync`, to an S3 server on the same "
            "machine. No network and no AWS took part.",
            *goals_section(document["goals"], "95 % interval"),
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
