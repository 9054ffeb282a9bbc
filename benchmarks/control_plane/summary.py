"""Computes medians, spreads, ratios and a verdict from trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np

from benchmarks.control_plane.design import COMMANDS, GOAL, Cell, Command, Design, Goal
from benchmarks.execution import Timing

_RESAMPLES = 10_000
_INTERVAL_PERCENT = (2.5, 97.5)


@dataclass(frozen=True)
class Trial:
    """One timed run.

    Args:
        cell: the command and the project's size.
        round: its round, from 1.
        timing: wall time and processor time.
    """

    cell: Cell
    round: int
    timing: Timing


@dataclass(frozen=True)
class Ratio:
    """A median as a multiple of the median at the smallest size.

    Args:
        value: ratio of the two medians.
        low: lower end of its 95 % interval (percentile bootstrap, both cells resampled); None if a
            cell has one trial.
        high: upper end.
    """

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class CellSummary:
    """The trials of one cell.

    Args:
        cell: the command and the project's size.
        trials: in the order in which they ran.
        median_seconds: median of the wall times.
        lowest_seconds: shortest wall time.
        highest_seconds: longest wall time.
        median_processor_seconds: median of the processor times.
        ratio: to the smallest size of the same command; None for that size itself.
    """

    cell: Cell
    trials: tuple[Trial, ...]
    median_seconds: float
    lowest_seconds: float
    highest_seconds: float
    median_processor_seconds: float
    ratio: Ratio | None


class Verdict(StrEnum):
    """Whether the goal was met, as far as the trials show."""

    MET = "met"
    MET_BY_MEDIANS = "met by the medians only"
    MISSED = "not met"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Summary:
    """All cells, in the order of the report, and the verdict."""

    cells: Mapping[Cell, CellSummary]
    verdict: Verdict

    def of(self, command: Command, config_count: int) -> CellSummary:
        """Returns one cell's summary."""
        return self.cells[Cell(command, config_count)]


def summarize(design: Design, trials: Sequence[Trial]) -> Summary:
    """Computes medians, spreads and ratios; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    cells: dict[Cell, CellSummary] = {}
    for command in COMMANDS:
        baseline: list[float] | None = None
        for size in design.sizes:
            cell = Cell(command, size)
            own = tuple(trial for trial in trials if trial.cell == cell)
            seconds = [trial.timing.seconds for trial in own]
            cells[cell] = CellSummary(
                cell=cell,
                trials=own,
                median_seconds=median(seconds),
                lowest_seconds=min(seconds),
                highest_seconds=max(seconds),
                median_processor_seconds=median(t.timing.processor_seconds for t in own),
                ratio=None if baseline is None else _ratio(seconds, baseline, generator),
            )
            baseline = baseline or seconds
    return Summary(cells, _verdict(GOAL, design, cells))


def _ratio(
    seconds: Sequence[float], baseline: Sequence[float], generator: np.random.Generator
) -> Ratio:
    value = median(seconds) / median(baseline)
    if min(len(seconds), len(baseline)) < 2:
        return Ratio(value, None, None)
    ratios = _resampled(seconds, generator) / _resampled(baseline, generator)
    low, high = np.percentile(ratios, _INTERVAL_PERCENT)
    return Ratio(value, float(low), float(high))


def _resampled(seconds: Sequence[float], generator: np.random.Generator) -> np.ndarray:
    draws = generator.choice(np.asarray(seconds), size=(_RESAMPLES, len(seconds)))
    medians: np.ndarray = np.median(draws, axis=1)
    return medians


def _verdict(goal: Goal, design: Design, cells: Mapping[Cell, CellSummary]) -> Verdict:
    cell = cells.get(Cell(goal.command, goal.config_count))
    if cell is None or cell.ratio is None or design.sizes[0] != goal.baseline_count:
        return Verdict.NOT_MEASURED
    if cell.ratio.value > goal.highest_ratio:
        return Verdict.MISSED
    # Without an interval, the influence of chance is unknown.
    if cell.ratio.high is None or cell.ratio.high > goal.highest_ratio:
        return Verdict.MET_BY_MEDIANS
    return Verdict.MET
