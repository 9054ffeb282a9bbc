"""Goes through the design, one command after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import mean
from typing import Protocol

from benchmarks.control_plane.design import Cell, Design
from benchmarks.control_plane.summary import Trial
from benchmarks.execution import Timing


class Runner(Protocol):
    """What times a command."""

    def run(self, cell: Cell) -> Timing:
        """Runs the command once."""


def measure(design: Design, runner: Runner, say: Callable[[str], None]) -> list[Trial]:
    """Runs every trial.

    Args:
        design: what to run.
        runner: runs it.
        say: told what was measured and about how long the rest will take.

    Returns:
        The trials in the order in which they ran.
    """
    planned = [
        (number, cell) for number, cells in enumerate(design.rounds(), start=1) for cell in cells
    ]
    width = len(str(len(planned)))
    trials: list[Trial] = []
    for position, (number, cell) in enumerate(planned, start=1):
        trial = Trial(cell, number, runner.run(cell))
        trials.append(trial)
        rest = _expected_seconds((cell for _, cell in planned[position:]), trials)
        configs = f"{cell.config_count} config{'' if cell.config_count == 1 else 's'}"
        say(
            f"{position:{width}}/{len(planned)}  round {number} of {design.trials}  "
            f"{trial.timing.seconds:6.2f} s  {cell.command.shown}, {configs}  "
            f"({rest / 60:.0f} min left)"
        )
    return trials


def _expected_seconds(cells: Iterable[Cell], trials: list[Trial]) -> float:
    """What the cells will take: as much as the last time, else as much as the average."""
    last = {trial.cell: trial.timing.seconds for trial in trials}
    average = mean(trial.timing.seconds for trial in trials)
    return sum(last.get(cell, average) for cell in cells)
