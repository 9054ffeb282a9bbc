"""Computes throughputs, latencies, intervals and verdicts from trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.estimates import Estimate, Verdict, estimate, ratio_of_medians, resampled_medians
from benchmarks.summary import CellSummary, summarize_cells
from benchmarks.tensorrt.design import (
    LONGEST_OVERHEAD_SECONDS,
    Cell,
    Design,
    RatioGoal,
)
from benchmarks.tensorrt.overhead import Overhead
from benchmarks.tensorrt.session import ModelSession


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
    cells: Mapping[Cell, CellSummary[Cell]]


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
        ModelSummary(session, summarize_cells(design.cells(session.model), session.trials))
        for session in sessions
    )
    [overhead] = [session.overhead for session in sessions if session.overhead]
    return Summary(
        models,
        tuple(_goal(goal, models[0].cells, generator) for goal in design.ratio_goals),
        _overhead(overhead, generator),
    )


def _goal(
    goal: RatioGoal, cells: Mapping[Cell, CellSummary[Cell]], generator: np.random.Generator
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
    return OverheadSummary(http_p50, bare_p50, added, added.at_most(LONGEST_OVERHEAD_SECONDS))
