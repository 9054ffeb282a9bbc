"""From trials to throughputs, latencies, intervals and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median

import numpy as np
import numpy.typing as npt

from benchmarks.tensorrt.design import (
    LONGEST_OVERHEAD_SECONDS,
    Cell,
    Design,
    RatioGoal,
)
from benchmarks.tensorrt.overhead import Overhead
from benchmarks.tensorrt.session import ModelSession, Trial

_RESAMPLES = 10_000
_INTERVAL_PERCENT = (2.5, 97.5)

FloatArray = npt.NDArray[np.float64]


class Verdict(StrEnum):
    """Whether a goal was met, as far as the trials can tell."""

    MET = "met"
    """By all of the interval."""
    MET_BY_MEDIANS = "met by the medians only"
    MISSED = "not met"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Latencies:
    """Of some requests, in seconds."""

    count: int
    shortest: float
    longest: float
    average: float
    p50: float
    p99: float


@dataclass(frozen=True)
class CellSummary:
    """The trials of one cell.

    Args:
        cell: what ran.
        trials: in the order in which they ran.
        requests_per_second: median of the trials.
        latencies: of the requests of all trials together.
    """

    cell: Cell
    trials: tuple[Trial, ...]
    requests_per_second: float
    latencies: Latencies

    @property
    def throughputs(self) -> list[float]:
        """Requests per second of each trial."""
        return [trial.load.requests_per_second for trial in self.trials]


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval (percentile bootstrap); no interval from one trial."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class GoalSummary:
    """A goal about a ratio, and what was found; no ratio where a cell was not measured."""

    goal: RatioGoal
    ratio: Estimate | None
    verdict: Verdict


@dataclass(frozen=True)
class OverheadSummary:
    """What the server adds to the decode loop, in seconds.

    Args:
        http_p50: of the requests.
        bare_p50: of the decode loops.
        added: difference of the two.
        verdict: on the goal.
    """

    http_p50: float
    bare_p50: float
    added: Estimate
    verdict: Verdict


@dataclass(frozen=True)
class ModelSummary:
    """One model's results."""

    session: ModelSession
    cells: Mapping[Cell, CellSummary]


@dataclass(frozen=True)
class Summary:
    """All results.

    Args:
        models: in the order of the report.
        goals: about the first of them.
        overhead: of Slipway's server, with the model of the design that it is measured with.
    """

    models: tuple[ModelSummary, ...]
    goals: tuple[GoalSummary, ...]
    overhead: OverheadSummary


def summarize(design: Design, sessions: Sequence[ModelSession]) -> Summary:
    """Computes everything; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    models = tuple(
        ModelSummary(
            session,
            {
                cell: found
                for cell in design.cells(session.model)
                if (found := _cell(cell, session.trials))
            },
        )
        for session in sessions
    )
    [overhead] = [session.overhead for session in sessions if session.overhead]
    return Summary(
        models,
        tuple(_goal(goal, models[0].cells, generator) for goal in design.ratio_goals),
        _overhead(overhead, generator),
    )


def latencies_of(seconds: Sequence[float]) -> Latencies:
    """Returns the figures of some requests."""
    p50, p99 = np.percentile(seconds, (50, 99))
    return Latencies(
        len(seconds), min(seconds), max(seconds), fmean(seconds), float(p50), float(p99)
    )


def _cell(cell: Cell, trials: Sequence[Trial]) -> CellSummary | None:
    own = tuple(trial for trial in trials if trial.cell == cell)
    if not own:
        return None
    return CellSummary(
        cell, own,
        median(trial.load.requests_per_second for trial in own),
        latencies_of([seconds for trial in own for seconds in trial.load.all_latencies_seconds]),
    )  # fmt: skip


def _goal(
    goal: RatioGoal, cells: Mapping[Cell, CellSummary], generator: np.random.Generator
) -> GoalSummary:
    if goal.cell not in cells or goal.baseline not in cells:
        return GoalSummary(goal, None, Verdict.NOT_MEASURED)
    found, baseline = cells[goal.cell].throughputs, cells[goal.baseline].throughputs
    value = median(found) / median(baseline)
    if min(len(found), len(baseline)) < 2:
        ratio = Estimate(value, None, None)
    else:
        ratios = _medians(found, generator) / _medians(baseline, generator)
        ratio = _estimate(value, ratios)
    if value < goal.least:
        return GoalSummary(goal, ratio, Verdict.MISSED)
    # Without an interval nothing is known of how far chance reaches.
    is_sure = ratio.low is not None and ratio.low >= goal.least
    return GoalSummary(goal, ratio, Verdict.MET if is_sure else Verdict.MET_BY_MEDIANS)


def _overhead(overhead: Overhead, generator: np.random.Generator) -> OverheadSummary:
    http_p50, bare_p50 = median(overhead.http_seconds), median(overhead.bare_seconds)
    added = _estimate(
        http_p50 - bare_p50,
        _medians(overhead.http_seconds, generator) - _medians(overhead.bare_seconds, generator),
    )
    if added.value >= LONGEST_OVERHEAD_SECONDS:
        verdict = Verdict.MISSED
    elif added.high is not None and added.high < LONGEST_OVERHEAD_SECONDS:
        verdict = Verdict.MET
    else:
        verdict = Verdict.MET_BY_MEDIANS
    return OverheadSummary(http_p50, bare_p50, added, verdict)


def _medians(values: Sequence[float], generator: np.random.Generator) -> FloatArray:
    """Returns the medians of as many values drawn with replacement, many times."""
    draws = generator.choice(np.asarray(values), size=(_RESAMPLES, len(values)))
    medians: FloatArray = np.median(draws, axis=1)
    return medians


def _estimate(value: float, resampled: FloatArray) -> Estimate:
    low, high = np.percentile(resampled, _INTERVAL_PERCENT)
    return Estimate(value, float(low), float(high))
