"""Computes medians, spreads and verdicts from trials."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.config_language.design import Design, Measure, Readings, Task
from benchmarks.estimates import Spread, Verdict, spread
from benchmarks.trials import Trial


@dataclass(frozen=True)
class Row:
    """The trials of one measure, in seconds or bytes."""

    measure: Measure
    values: tuple[float, ...]
    spread: Spread
    verdict: Verdict | None


def summarize(design: Design, trials: Sequence[Trial[Task, Readings]]) -> list[Row]:
    """Computes a row for each measure, in the order of the report."""
    rows = []
    for measure in design.measures:
        values = tuple(
            trial.result[measure.reading] for trial in trials if trial.cell == measure.task
        )
        found = spread(values)
        rows.append(Row(measure, values, found, _verdict(found, measure.goal)))
    return rows


def _verdict(found: Spread, goal: float | None) -> Verdict | None:
    if goal is None:
        return None
    if found.high < goal:
        return Verdict.MET
    return Verdict.MET_BY_MEDIAN if found.median < goal else Verdict.MISSED
