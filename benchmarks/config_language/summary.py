"""Computes medians, spreads and verdicts from trials."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

from benchmarks.config_language.design import Design, Measure
from benchmarks.config_language.session import Trial


class Verdict(StrEnum):
    """Whether a goal was met, as far as the trials show."""

    MET = "met"
    """By every trial."""
    MET_BY_MEDIAN = "met by the median only"
    MISSED = "not met"


@dataclass(frozen=True)
class Row:
    """The trials of one measure, in seconds or bytes."""

    measure: Measure
    values: tuple[float, ...]
    median: float
    lowest: float
    highest: float
    verdict: Verdict | None


def summarize(design: Design, trials: Sequence[Trial]) -> list[Row]:
    """Computes a row for each measure, in the order of the report."""
    rows = []
    for measure in design.measures:
        values = tuple(
            trial.readings[measure.reading] for trial in trials if trial.task == measure.task
        )
        rows.append(
            Row(
                measure,
                values,
                median(values),
                min(values),
                max(values),
                None if measure.goal is None else _verdict(values, measure.goal),
            )
        )
    return rows


def _verdict(values: Sequence[float], goal: float) -> Verdict:
    if max(values) < goal:
        return Verdict.MET
    return Verdict.MET_BY_MEDIAN if median(values) < goal else Verdict.MISSED
