"""Computes throughputs, latencies, intervals and verdicts from trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np

from benchmarks.estimates import Estimate, Verdict, estimate, ratio_of_medians, resampled_medians
from benchmarks.tensorrt.design import (
    LONGEST_OVERHEAD_SECONDS,
    Cell,
    Design,
    RatioGoal,
)
from benchmarks.tensorrt.overhead import Overhead
from benchmarks.tensorrt.session import ModelSession, Trial


@dataclass(frozen=True)
class Latencies:
    """The latencies of some requests, in seconds."""

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
        cell: model, workload, system and number of clients.
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
        """Returns the requests per second of each trial."""
        return [trial.load.requests_per_second for trial in self.trials]


@dataclass(frozen=True)
class GoalSummary:
    """A goal about a ratio, and its result; there is no ratio if a cell was not measured."""

    goal: RatioGoal
    ratio: Estimate | None
    verdict: Verdict


@dataclass(frozen=True)
class OverheadSummary:
    """The time that the server adds to the decode loop, in seconds.

    Args:
        http_p50: median of the requests.
        bare_p50: median of the decode loops.
        added: difference of the two.
        verdict: verdict on the goal.
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
        goals: results of the goals, which are about the first model.
        overhead: overhead of Slipway's server, with the design's `overhead_model`.
    """

    models: tuple[ModelSummary, ...]
    goals: tuple[GoalSummary, ...]
    overhead: OverheadSummary


def summarize(design: Design, sessions: Sequence[ModelSession]) -> Summary:
    """Computes all results; the same trials and seed give the same numbers."""
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
        cell,
        own,
        median(trial.load.requests_per_second for trial in own),
        latencies_of([seconds for trial in own for seconds in trial.load.all_latencies_seconds]),
    )


def _goal(
    goal: RatioGoal, cells: Mapping[Cell, CellSummary], generator: np.random.Generator
) -> GoalSummary:
    if goal.cell not in cells or goal.baseline not in cells:
        return GoalSummary(goal, None, Verdict.NOT_MEASURED)
    found, baseline = cells[goal.cell].throughputs, cells[goal.baseline].throughputs
    ratio = ratio_of_medians(found, baseline, generator)
    return GoalSummary(goal, ratio, ratio.at_least(goal.least))


def _overhead(overhead: Overhead, generator: np.random.Generator) -> OverheadSummary:
    http_p50, bare_p50 = median(overhead.http_seconds), median(overhead.bare_seconds)
    added = estimate(
        http_p50 - bare_p50,
        resampled_medians(overhead.http_seconds, generator)
        - resampled_medians(overhead.bare_seconds, generator),
    )
    if added.value >= LONGEST_OVERHEAD_SECONDS:
        verdict = Verdict.MISSED
    elif added.high is not None and added.high < LONGEST_OVERHEAD_SECONDS:
        verdict = Verdict.MET
    else:
        verdict = Verdict.MET_BY_MEDIANS
    return OverheadSummary(http_p50, bare_p50, added, verdict)
