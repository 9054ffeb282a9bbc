"""Made-up trials to compute with."""

from collections.abc import Mapping, Sequence

from benchmarks.control_plane.design import COMMANDS, GOAL, Cell, Design
from benchmarks.execution import Timing
from benchmarks.trials import Trial


def design(*sizes: int, trials: int = 5) -> Design:
    return Design(sizes=sizes, trials=trials, stated_trials=trials, seed=1)


def trials_of(
    design: Design, deploy_seconds: Mapping[int, Sequence[float]]
) -> list[Trial[Cell, Timing]]:
    """Returns trials in which the goal's command takes so long and every other one 2 seconds."""
    return [
        Trial(
            Cell(command, size),
            number,
            Timing(seconds=found, processor_seconds=found / 2),
        )
        for number in range(1, design.trials + 1)
        for command in COMMANDS
        for size in design.sizes
        for found in [deploy_seconds[size][number - 1] if command == GOAL.command else 2.0]
    ]
