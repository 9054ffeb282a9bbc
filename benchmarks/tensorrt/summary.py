"""Computes throughputs, latencies, intervals and verdicts from trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.estimates import Estimate, Verdict, ratio_of_medians
from benchmarks.overhead import Costs, OverheadSummary, summarize_overhead
from benchmarks.summary import CellSummary, summarize_cells
from benchmarks.tensorrt.design import Cell, Design, RatioGoal
from benchmarks.tensorrt.session import ModelSession


@dataclass(frozen=True)
class GoalSummary:
    """A goal about a ratio, and its result; there is no ratio if a cell was not measured."""

    goal: RatioGoal
    ratio: Estimate | None
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
        overhead: the server over a model that computes nothing.
    """

    models: tuple[ModelSummary, ...]
    goals: tuple[GoalSummary, ...]
    overhead: OverheadSummary


def summarize(design: Design, sessions: Sequence[ModelSession], costs: Costs) -> Summary:
    """Computes all results; the same trials and seed give the same numbers.

    Args:
        design: the plan of the run.
        sessions: the measurements of the models.
        costs: the measurements of the server over a model that computes nothing.
    """
    generator = np.random.default_rng(design.seed)
    models = tuple(
        ModelSummary(session, summarize_cells(design.cells(session.model), session.trials))
        for session in sessions
    )
    return Summary(
        models,
        tuple(_goal(goal, models[0].cells, generator) for goal in design.ratio_goals),
        summarize_overhead(costs, generator),
    )


def _goal(
    goal: RatioGoal, cells: Mapping[Cell, CellSummary[Cell]], generator: np.random.Generator
) -> GoalSummary:
    if goal.cell not in cells or goal.baseline not in cells:
        return GoalSummary(goal, None, Verdict.NOT_MEASURED)
    found, baseline = cells[goal.cell].throughputs, cells[goal.baseline].throughputs
    ratio = ratio_of_medians(found, baseline, generator)
    return GoalSummary(goal, ratio, ratio.at_least(goal.least))
