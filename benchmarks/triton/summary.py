"""Computes throughputs, latencies, intervals and verdicts from trials."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from benchmarks.estimates import Estimate, Verdict, ratio_of_medians
from benchmarks.summary import CellSummary, summarize_cells
from benchmarks.triton.design import (
    COPIES,
    GOAL_CLIENTS,
    GOALS,
    MOST_P99_RATIO,
    Cell,
    Design,
    Goal,
    Server,
    System,
)
from benchmarks.triton.session import Session


@dataclass(frozen=True)
class GoalSummary:
    """The result of one goal.

    Args:
        goal: names the other system.
        copies: copies of the model in both.
        throughput: as a multiple of the other system's.
        throughput_verdict: verdict on the throughput.
        p99: 99th percentile as a multiple of the other system's.
        p99_verdict: verdict on the 99th percentile.
    """

    goal: Goal
    copies: int
    throughput: Estimate
    throughput_verdict: Verdict
    p99: Estimate
    p99_verdict: Verdict


@dataclass(frozen=True)
class Summary:
    """All results."""

    session: Session
    cells: Mapping[Cell, CellSummary[Cell]]
    goals: tuple[GoalSummary, ...]


def summarize(design: Design, session: Session) -> Summary:
    """Computes all results; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    cells = summarize_cells(design.cells, session.trials)
    goals = []
    for copies, goal in product(COPIES, GOALS):
        found = cells[Cell(Server(System.TRITON, copies), GOAL_CLIENTS)]
        baseline = cells[Cell(Server(goal.baseline, copies), GOAL_CLIENTS)]
        throughput = ratio_of_medians(found.throughputs, baseline.throughputs, generator)
        p99 = ratio_of_medians(
            [each.p99 for each in found.trial_latencies],
            [each.p99 for each in baseline.trial_latencies],
            generator,
        )
        verdicts = throughput.at_least(goal.least_throughput_ratio), p99.at_most(MOST_P99_RATIO)
        goals.append(GoalSummary(goal, copies, throughput, verdicts[0], p99, verdicts[1]))
    return Summary(session, cells, tuple(goals))
