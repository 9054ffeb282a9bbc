"""Computes medians, spreads, ratios and a verdict from trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.control_plane.design import COMMANDS, GOAL, Cell, Command, Design
from benchmarks.estimates import Estimate, Spread, Verdict, ratio_of_medians, spread
from benchmarks.execution import Timing
from benchmarks.trials import Trial


@dataclass(frozen=True)
class CellSummary:
    """The trials of one cell.

    Args:
        cell: the command and the project's size.
        trials: in the order in which they ran.
        seconds: wall times.
        median_processor_seconds: median of the processor times.
        ratio: to the smallest size of the same command; None for that size itself.
    """

    cell: Cell
    trials: tuple[Trial[Cell, Timing], ...]
    seconds: Spread
    median_processor_seconds: float
    ratio: Estimate | None


@dataclass(frozen=True)
class Summary:
    """All cells, in the order of the report, and the verdict."""

    cells: Mapping[Cell, CellSummary]
    verdict: Verdict

    def of(self, command: Command, config_count: int) -> CellSummary:
        """Returns one cell's summary."""
        return self.cells[Cell(command, config_count)]


def summarize(design: Design, trials: Sequence[Trial[Cell, Timing]]) -> Summary:
    """Computes medians, spreads and ratios; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    cells: dict[Cell, CellSummary] = {}
    for command in COMMANDS:
        baseline: list[float] | None = None
        for size in design.sizes:
            cell = Cell(command, size)
            own = tuple(trial for trial in trials if trial.cell == cell)
            seconds = [trial.result.seconds for trial in own]
            cells[cell] = CellSummary(
                cell=cell,
                trials=own,
                seconds=spread(seconds),
                median_processor_seconds=median(trial.result.processor_seconds for trial in own),
                ratio=ratio_of_medians(seconds, baseline, generator) if baseline else None,
            )
            baseline = baseline or seconds
    return Summary(cells, _verdict(design, cells))


def _verdict(design: Design, cells: Mapping[Cell, CellSummary]) -> Verdict:
    cell = cells.get(Cell(GOAL.command, GOAL.config_count))
    if cell is None or cell.ratio is None or design.sizes[0] != GOAL.baseline_count:
        return Verdict.NOT_MEASURED
    return cell.ratio.at_most(GOAL.highest_ratio)
