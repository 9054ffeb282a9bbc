"""Computes what all trials under load have in common: throughputs and latencies."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, TypeVar

import numpy as np

from benchmarks.estimates import Latencies, latencies_of
from benchmarks.load import LoadResult
from benchmarks.report import rounded_rate
from benchmarks.trials import Trial, results_of
from slipway.benchmarking.estimates import Estimate, ratio_of_medians

Cell = TypeVar("Cell")


def pooled_latencies(loads: Iterable[LoadResult]) -> Latencies:
    return latencies_of([each for load in loads for each in load.all_latencies_seconds])


def cells_as_json(
    cells: Iterable[Cell],
    trials: Sequence[Trial[Cell, LoadResult]],
    rate: str,
    names: Sequence[str],
    describe: Callable[[Cell], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Returns the figures of the cells that were measured, each with all of its trials.

    `rate` is the key of the throughput, `names` has the figures of the latencies, and `describe`
    returns what identifies a cell.
    """
    found = []
    for cell in cells:
        loads = results_of(trials, cell)
        if not loads:
            continue
        found.append(
            {
                **describe(cell),
                rate: rounded_rate(median(load.requests_per_second for load in loads)),
                **pooled_latencies(loads).as_json(names),
                "trials": [
                    {
                        "round": trial.round,
                        "order": order,
                        rate: rounded_rate(trial.result.requests_per_second),
                        **pooled_latencies([trial.result]).as_json(names),
                    }
                    for order, trial in enumerate(trials, start=1)
                    if trial.cell == cell
                ],
            }
        )
    return found


def throughput_ratio(
    trials: Sequence[Trial[Cell, LoadResult]],
    cell: Cell,
    baseline: Cell,
    generator: np.random.Generator,
) -> Estimate:
    found, other = (
        [load.requests_per_second for load in results_of(trials, each)] for each in (cell, baseline)
    )
    return ratio_of_medians(found, other, generator)


def latency_ratio(
    trials: Sequence[Trial[Cell, LoadResult]],
    cell: Cell,
    baseline: Cell,
    name: str,
    generator: np.random.Generator,
) -> Estimate:
    found, other = (
        [getattr(pooled_latencies([load]), name) for load in results_of(trials, each)]
        for each in (cell, baseline)
    )
    return ratio_of_medians(found, other, generator)
