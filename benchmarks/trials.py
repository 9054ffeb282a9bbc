"""Trials: their random order, and their results."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Generic, TypeVar

Cell = TypeVar("Cell")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Trial(Generic[Cell, Result]):
    """One measurement of a cell; rounds count from 1."""

    cell: Cell
    round: int
    result: Result


def results_of(trials: Iterable[Trial[Cell, Result]], cell: Cell) -> list[Result]:
    return [trial.result for trial in trials if trial.cell == cell]


def shuffled(rounds: Iterable[Iterable[Cell]], seed: int | str) -> list[list[Cell]]:
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
    cells: Sequence[Cell], trials: Callable[[Cell], int], seed: int | str
) -> list[list[Cell]]:
    """Returns shuffled rounds in which every cell has its number of trials.

    A cell is in a round once at most. Cells with fewer trials are spread over the rounds, and begin
    in the first.
    """
    most = max(map(trials, cells))
    return shuffled(
        (
            [each for each in cells if number in _spread(trials(each), most)]
            for number in range(most)
        ),
        seed,
    )


def _spread(count: int, rounds: int) -> Sequence[int]:
    """Returns `count` of the rounds, spread evenly from the first to the last."""
    if count == 1:
        return [0]
    return [round(index * (rounds - 1) / (count - 1)) for index in range(count)]


def carry_out(
    rounds: Sequence[Sequence[Cell]],
    measure: Callable[[Cell], Result],
    describe: Callable[[Cell, Result], str],
    say: Callable[[str], None],
) -> tuple[Trial[Cell, Result], ...]:
    """Measures the cells of every round, one after the other, in the order of the run.

    `say` is called with the description of each measurement, and with the estimated time that is
    left: a cell takes as long as the last time, or else as long as the average cell.
    """
    planned = [(number, cell) for number, cells in enumerate(rounds, start=1) for cell in cells]
    width = len(str(len(planned)))
    trials: list[Trial[Cell, Result]] = []
    seconds: dict[Cell, float] = {}
    for position, (number, cell) in enumerate(planned, start=1):
        began_at = time.monotonic()
        trial = Trial(cell, number, measure(cell))
        seconds[cell] = time.monotonic() - began_at
        trials.append(trial)
        average = fmean(seconds.values())
        left_seconds = sum(seconds.get(each, average) for _, each in planned[position:])
        say(
            f"{position:{width}}/{len(planned)}  round {number} of {len(rounds)}  "
            f"{describe(cell, trial.result)}  ({left_seconds / 60:.0f} min left)"
        )
    return tuple(trials)
