"""Carries out the design, one command after the other."""

from collections.abc import Callable, Iterable
from statistics import mean

from benchmarks.control_plane.design import Cell, Design
from benchmarks.execution import Timing
from benchmarks.report import counted
from benchmarks.trials import Trial


def measure(
    design: Design, run: Callable[[Cell], Timing], say: Callable[[str], None]
) -> list[Trial[Cell, Timing]]:
    """Runs every trial.

    Args:
        design: the plan of the run.
        run: runs a command and times it.
        say: called with each measurement and the estimated time that is left.

    Returns:
        The trials in the order in which they ran.
    """
    planned = [
        (number, cell) for number, cells in enumerate(design.rounds(), start=1) for cell in cells
    ]
    width = len(str(len(planned)))
    trials: list[Trial[Cell, Timing]] = []
    for position, (number, cell) in enumerate(planned, start=1):
        trial = Trial(cell, number, run(cell))
        trials.append(trial)
        rest = _expected_seconds((cell for _, cell in planned[position:]), trials)
        say(
            f"{position:{width}}/{len(planned)}  round {number} of {design.trials}  "
            f"{trial.result.seconds:6.2f} s  {cell.command.shown}, "
            f"{counted(cell.config_count, 'config')}  "
            f"({rest / 60:.0f} min left)"
        )
    return trials


def _expected_seconds(cells: Iterable[Cell], trials: list[Trial[Cell, Timing]]) -> float:
    """Returns the estimated time of cells: as long as the last time, or else as the average."""
    last = {trial.cell: trial.result.seconds for trial in trials}
    average = mean(trial.result.seconds for trial in trials)
    return sum(last.get(cell, average) for cell in cells)
