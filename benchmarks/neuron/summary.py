"""Computes throughputs, latencies, intervals and verdicts from trials."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from benchmarks.estimates import Estimate, Verdict, ratio_of_medians
from benchmarks.neuron.design import (
    LEAST_THROUGHPUT_RATIO,
    MOST_P95_RATIO,
    Cell,
    Design,
    Goal,
)
from benchmarks.neuron.session import ModelSession, Trial


@dataclass(frozen=True)
class Latencies:
    """The latencies of some requests, in seconds."""

    count: int
    p50: float
    p95: float
    p99: float


@dataclass(frozen=True)
class CellSummary:
    """The trials of one cell.

    Args:
        cell: model, workload, server and number of clients.
        trials: in the order in which they ran.
        sentences_per_second: median of the trials; a request holds one.
        latencies: of the requests of all trials together.
    """

    cell: Cell
    trials: tuple[Trial, ...]
    sentences_per_second: float
    latencies: Latencies

    @property
    def throughputs(self) -> list[float]:
        """Returns the sentences per second of each trial."""
        return [trial.load.requests_per_second for trial in self.trials]

    @property
    def p95s(self) -> list[float]:
        """Returns the 95th percentile of the latencies of each trial, in seconds."""
        return [latencies_of(trial.load.all_latencies_seconds).p95 for trial in self.trials]


@dataclass(frozen=True)
class GoalSummary:
    """The result of one goal.

    Args:
        goal: the two cells that are compared.
        throughput: as a multiple of the naive server's.
        throughput_verdict: verdict on the throughput.
        p95: 95th percentile as a multiple of the naive server's.
        p95_verdict: verdict on the 95th percentile.
    """

    goal: Goal
    throughput: Estimate
    throughput_verdict: Verdict
    p95: Estimate
    p95_verdict: Verdict


@dataclass(frozen=True)
class ModelSummary:
    """One model's results."""

    session: ModelSession
    cells: Mapping[Cell, CellSummary]
    goals: tuple[GoalSummary, ...]


def summarize(design: Design, sessions: Sequence[ModelSession]) -> tuple[ModelSummary, ...]:
    """Computes all results; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    found = []
    for session in sessions:
        cells = {cell: _cell(cell, session.trials) for cell in design.cells(session.model)}
        goals = tuple(_goal(goal, cells, generator) for goal in design.goals(session.model))
        found.append(ModelSummary(session, cells, goals))
    return tuple(found)


def latencies_of(seconds: Sequence[float]) -> Latencies:
    """Returns the figures of some requests."""
    p50, p95, p99 = np.percentile(seconds, (50, 95, 99))
    return Latencies(len(seconds), float(p50), float(p95), float(p99))


def _cell(cell: Cell, trials: Sequence[Trial]) -> CellSummary:
    own = tuple(trial for trial in trials if trial.cell == cell)
    return CellSummary(
        cell,
        own,
        median(trial.load.requests_per_second for trial in own),
        latencies_of([seconds for trial in own for seconds in trial.load.all_latencies_seconds]),
    )


def _goal(
    goal: Goal, cells: Mapping[Cell, CellSummary], generator: np.random.Generator
) -> GoalSummary:
    found, baseline = cells[goal.cell], cells[goal.baseline]
    throughput = ratio_of_medians(found.throughputs, baseline.throughputs, generator)
    p95 = ratio_of_medians(found.p95s, baseline.p95s, generator)
    return GoalSummary(
        goal,
        throughput,
        throughput.at_least(LEAST_THROUGHPUT_RATIO),
        p95,
        p95.at_most(MOST_P95_RATIO),
    )
