"""Computes throughputs, latencies, intervals and verdicts from trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.estimates import Estimate, Verdict, ratio_of_medians
from benchmarks.neuron.design import (
    FULL,
    MOST_P95_RATIO,
    Cell,
    Design,
    Goal,
    least_throughput_ratio,
)
from benchmarks.neuron.session import ModelSession
from benchmarks.summary import CellSummary, summarize_cells


@dataclass(frozen=True)
class GoalSummary:
    """The result of one goal.

    Args:
        goal: the two cells that are compared.
        least_throughput: goal for the throughput.
        throughput: as a multiple of the naive server's.
        throughput_verdict: verdict on the throughput.
        p95: 95th percentile as a multiple of the naive server's.
        p95_verdict: verdict on the 95th percentile.
        without_padding: the ratio of throughputs with questions that no server pads.
    """

    goal: Goal
    least_throughput: float
    throughput: Estimate
    throughput_verdict: Verdict
    p95: Estimate
    p95_verdict: Verdict
    without_padding: Estimate

    @property
    def padding_factor(self) -> float:
        """Returns the part of the throughput's ratio that comes from padding saved, as a factor."""
        return self.throughput.value / self.without_padding.value


@dataclass(frozen=True)
class ModelSummary:
    """One model's results."""

    session: ModelSession
    cells: Mapping[Cell, CellSummary[Cell]]
    goals: tuple[GoalSummary, ...]


def summarize(design: Design, sessions: Sequence[ModelSession]) -> tuple[ModelSummary, ...]:
    """Computes all results; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    found = []
    for session in sessions:
        cells = summarize_cells(design.cells(session.model), session.trials)
        goals = tuple(_goal(goal, cells, generator) for goal in design.goals(session.model))
        found.append(ModelSummary(session, cells, goals))
    return tuple(found)


def _goal(
    goal: Goal, cells: Mapping[Cell, CellSummary[Cell]], generator: np.random.Generator
) -> GoalSummary:
    found, baseline = cells[goal.cell], cells[goal.baseline]
    throughput = ratio_of_medians(found.throughputs, baseline.throughputs, generator)
    p95 = ratio_of_medians(
        [each.p95 for each in found.trial_latencies],
        [each.p95 for each in baseline.trial_latencies],
        generator,
    )
    least = least_throughput_ratio(goal.cell.model, goal.cell.server.batch_size)
    full, full_baseline = (
        cells[replace(cell, workload=FULL)].throughputs for cell in (goal.cell, goal.baseline)
    )
    return GoalSummary(
        goal,
        least,
        throughput,
        throughput.at_least(least),
        p95,
        p95.at_most(MOST_P95_RATIO),
        ratio_of_medians(full, full_baseline, generator),
    )
