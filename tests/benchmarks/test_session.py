"""The trials are what the design says, in its order."""

import pytest

from benchmarks.control_plane.design import Cell
from benchmarks.control_plane.session import measure
from benchmarks.errors import BenchmarkError
from benchmarks.execution import Timing
from tests.benchmarks.trials import design


class Runner:
    """Takes as many seconds as there are configs."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.ran: list[Cell] = []
        self.fails_at = fails_at

    def run(self, cell: Cell) -> Timing:
        self.ran.append(cell)
        if len(self.ran) == self.fails_at:
            raise BenchmarkError("it broke")
        return Timing(seconds=float(cell.config_count), processor_seconds=0.5)


def test_everything_runs_in_the_order_of_the_design():
    plan, runner = design(1, 10, trials=2), Runner()
    trials = measure(plan, runner.run, lambda _: None)
    rounds = plan.rounds()
    assert runner.ran == [cell for cells in rounds for cell in cells]
    assert [(trial.round, trial.cell) for trial in trials] == [
        (number, cell) for number, cells in enumerate(rounds, start=1) for cell in cells
    ]
    assert all(trial.result.seconds == trial.cell.config_count for trial in trials)


def test_progress_says_what_was_measured_and_how_long_the_rest_takes():
    plan, runner, said = design(60, trials=2), Runner(), []
    measure(plan, runner.run, said.append)
    assert len(said) == 18
    first = runner.ran[0].command.shown
    assert said[0] == f" 1/18  round 1 of 2   60.00 s  {first}, 60 configs  (17 min left)"
    assert said[-1].startswith("18/18  round 2 of 2   60.00 s  ")
    assert said[-1].endswith(", 60 configs  (0 min left)")


def test_a_failure_ends_it():
    runner = Runner(fails_at=3)
    with pytest.raises(BenchmarkError, match="it broke"):
        measure(design(1, trials=1), runner.run, lambda _: None)
    assert len(runner.ran) == 3
