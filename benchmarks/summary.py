"""Computes what all trials under load have in common: throughputs and latencies."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Generic, TypeVar

import numpy as np

from benchmarks.load import LoadResult
from benchmarks.report import milliseconds
from benchmarks.trials import Trial

Cell = TypeVar("Cell")


@dataclass(frozen=True)
class Latencies:
    """The latencies of some requests, in seconds."""

    count: int
    shortest: float
    longest: float
    average: float
    p50: float
    p95: float
    p99: float

    def as_json(self, names: Sequence[str]) -> dict[str, float]:
        """Returns the number of requests, and the named figures in milliseconds."""
        return {
            "requests": self.count,
            **{f"{name}_milliseconds": milliseconds(getattr(self, name)) for name in names},
        }


def latencies_of(seconds: Sequence[float]) -> Latencies:
    """Returns the figures of some requests."""
    p50, p95, p99 = map(float, np.percentile(seconds, (50, 95, 99)))
    return Latencies(len(seconds), min(seconds), max(seconds), fmean(seconds), p50, p95, p99)


@dataclass(frozen=True)
class CellSummary(Generic[Cell]):
    """The trials of one cell.

    Args:
        cell: the measured server and its load.
        trials: in the order in which they ran.
        requests_per_second: median of the trials.
        latencies: of the requests of all trials together.
    """

    cell: Cell
    trials: tuple[Trial[Cell, LoadResult], ...]
    requests_per_second: float
    latencies: Latencies

    @property
    def throughputs(self) -> list[float]:
        """Returns the requests per second of each trial."""
        return [trial.result.requests_per_second for trial in self.trials]

    @property
    def trial_latencies(self) -> list[Latencies]:
        """Returns the latencies of each trial."""
        return [latencies_of(trial.result.all_latencies_seconds) for trial in self.trials]

    def as_json(
        self, order: Sequence[Trial[Cell, LoadResult]], rate: str, names: Sequence[str]
    ) -> dict[str, Any]:
        """Returns the figures, and the figures of every trial."""
        return {
            rate: round(self.requests_per_second, 3),
            **self.latencies.as_json(names),
            "trials": [
                {
                    "round": trial.round,
                    "order": order.index(trial) + 1,
                    rate: round(trial.result.requests_per_second, 3),
                    **latencies_of(trial.result.all_latencies_seconds).as_json(names),
                }
                for trial in self.trials
            ],
        }


def summarize_cells(
    cells: Iterable[Cell], trials: Sequence[Trial[Cell, LoadResult]]
) -> dict[Cell, CellSummary[Cell]]:
    """Returns the summaries of those cells that were measured, in their order."""
    found: dict[Cell, CellSummary[Cell]] = {}
    for cell in cells:
        own = tuple(trial for trial in trials if trial.cell == cell)
        if own:
            seconds = [each for trial in own for each in trial.result.all_latencies_seconds]
            rate = median(trial.result.requests_per_second for trial in own)
            found[cell] = CellSummary(cell, own, rate, latencies_of(seconds))
    return found
