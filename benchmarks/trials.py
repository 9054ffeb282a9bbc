"""Trials: their random order, and their results."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

Measured = TypeVar("Measured")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Trial(Generic[Measured, Result]):
    """One measurement.

    Args:
        cell: the thing that was measured.
        round: its round, from 1.
        result: the measured values.
    """

    cell: Measured
    round: int
    result: Result


def shuffled(rounds: Iterable[Iterable[Measured]], seed: int | str) -> list[list[Measured]]:
    """Returns the rounds, each in a random order of its own; the seed decides it.

    A machine that gets slower or faster over the run therefore affects all cells alike.
    """
    # Random numbers of an experiment, not of a secret.
    generator = random.Random(seed)  # noqa: S311
    found = [list(cells) for cells in rounds]
    for cells in found:
        generator.shuffle(cells)
    return found


def rounds_of(
    cells: Sequence[Measured], trials: Callable[[Measured], int], seed: int | str
) -> list[list[Measured]]:
    """Returns shuffled rounds in which every cell has its trials, the first of them in round 1."""
    most = max(map(trials, cells))
    return shuffled(([each for each in cells if trials(each) > done] for done in range(most)), seed)


def carry_out(
    rounds: Sequence[Sequence[Measured]],
    measure: Callable[[Measured], Result],
    describe: Callable[[Measured, Result], str],
    say: Callable[[str], None],
) -> tuple[Trial[Measured, Result], ...]:
    """Measures the cells of every round, one after the other.

    Args:
        rounds: the cells in the order of the run.
        measure: measures one cell.
        describe: returns the line of progress for a measured cell.
        say: called with each line.

    Returns:
        The trials in the order in which they ran.
    """
    trials: list[Trial[Measured, Result]] = []
    for number, cells in enumerate(rounds, start=1):
        for cell in cells:
            trial = Trial(cell, number, measure(cell))
            trials.append(trial)
            say(f"round {number} of {len(rounds)}  {describe(cell, trial.result)}")
    return tuple(trials)
