"""Computes rates, ratios, intervals and verdicts from trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.estimates import (
    Estimate,
    Spread,
    Verdict,
    estimate,
    ratio_of_medians,
    resampled_medians,
    spread,
)
from benchmarks.publish.design import (
    CELLS,
    LEAST_RATIOS,
    MOST_SECONDS,
    Cell,
    Design,
    Way,
    Work,
)
from benchmarks.publish.session import Session


@dataclass(frozen=True)
class CellSummary:
    """One cell.

    Args:
        seconds: wall times.
        peak_bytes: most memory of any trial.
    """

    seconds: Spread
    peak_bytes: int


@dataclass(frozen=True)
class Goal:
    """The result of one goal.

    Args:
        work: the work of `slipway publish`.
        baseline: the other program; None for a limit in seconds.
        limit: least ratio of throughputs, or most seconds.
        found: the measured ratio or time.
        verdict: whether it was met.
    """

    work: Work
    baseline: Way | None
    limit: float
    found: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class Summary:
    """All results."""

    session: Session
    cells: Mapping[Cell, CellSummary]
    goals: tuple[Goal, ...]


def summarize(design: Design, session: Session) -> Summary:
    """Computes all results; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    seconds = {cell: [each.seconds for each in session.results(cell)] for cell in CELLS}
    goals = []
    for cell, times in seconds.items():
        if cell.way is not Way.PUBLISH:
            continue
        if not cell.work.is_upload:
            value = median(times)
            found = Estimate(value, None, None)
            if len(times) > 1:
                found = estimate(value, resampled_medians(times, generator))
            goals.append(Goal(cell.work, None, MOST_SECONDS, found, found.at_most(MOST_SECONDS)))
            continue
        for way, least in LEAST_RATIOS.items():
            # The same bytes: the ratio of the rates is the inverse ratio of the times.
            ratio = ratio_of_medians(seconds[Cell(cell.work, way)], times, generator)
            goals.append(Goal(cell.work, way, least, ratio, ratio.at_least(least)))
    cells = {
        cell: CellSummary(
            spread(seconds[cell]), max(each.peak_bytes for each in session.results(cell))
        )
        for cell in CELLS
    }
    return Summary(session, cells, tuple(goals))
