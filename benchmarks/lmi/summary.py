"""Computes times, throughputs and ratios from trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.estimates import Spread, spread
from benchmarks.lmi.design import BASELINE, TRANSFERS, Design, System, Transfer
from benchmarks.lmi.serving import ServingSession
from benchmarks.lmi.weights import WeightsSession
from benchmarks.summary import Latencies, latencies_of


@dataclass(frozen=True)
class Ratio:
    """One number as a multiple of another.

    Args:
        value: ratio of their medians.
        low: lowest ratio of a single round.
        high: highest ratio of a single round.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class LoadSummary:
    """One server under one number of clients.

    Args:
        requests_per_second: of the trials: all answers divided by their time, since DJL Serving
            does not serve all clients alike.
        latencies: of the requests of all trials together.
    """

    requests_per_second: Spread
    latencies: Latencies


@dataclass(frozen=True)
class SystemSummary:
    """One server.

    Args:
        ready_seconds: of the trials.
        answered_seconds: of the trials.
        loads: by the number of clients.
    """

    ready_seconds: Spread
    answered_seconds: Spread
    loads: Mapping[int, LoadSummary]


@dataclass(frozen=True)
class Comparison:
    """Two servers that answer one question of the report.

    Args:
        title: shown to readers.
        system: Slipway's server.
        other: DJL Serving's.
    """

    title: str
    system: System
    other: System


COMPARISONS = (
    Comparison(
        "the same graph, one request at a time", System.SLIPWAY_SINGLE, System.DJL_GRAPH_SINGLE
    ),
    Comparison("the same graph, in batches", System.SLIPWAY, System.DJL_GRAPH),
    Comparison("DJL's own handler, in batches", System.SLIPWAY, System.DJL_TRANSFORMERS_BATCHES),
    Comparison("each as it comes", System.SLIPWAY, System.DJL_TRANSFORMERS),
)
"""From what the server alone costs to what a user of either would see."""


@dataclass(frozen=True)
class ComparisonSummary:
    """The result of a comparison.

    Args:
        comparison: the two servers.
        ready: DJL Serving's time to ready as a multiple of Slipway's.
        throughputs: Slipway's requests per second as a multiple of DJL Serving's, by the number of
            clients.
    """

    comparison: Comparison
    ready: Ratio
    throughputs: Mapping[int, Ratio]


@dataclass(frozen=True)
class TransferSummary:
    """One way to fetch one content.

    Args:
        seconds: of the trials.
        processor_seconds: median of the trials.
        ratio: its time as a multiple of the baseline's.
    """

    seconds: Spread
    processor_seconds: float
    ratio: Ratio


@dataclass(frozen=True)
class ServingSummary:
    """The serving part."""

    session: ServingSession
    systems: Mapping[System, SystemSummary]
    comparisons: tuple[ComparisonSummary, ...]


@dataclass(frozen=True)
class WeightsSummary:
    """The weights part."""

    session: WeightsSession
    transfers: Mapping[Transfer, TransferSummary]


@dataclass(frozen=True)
class Summary:
    """All results; None for a part that was not measured."""

    serving: ServingSummary | None
    weights: WeightsSummary | None


def summarize(
    design: Design, serving: ServingSession | None, weights: WeightsSession | None
) -> Summary:
    """Computes all results.

    Args:
        design: the plan of the run.
        serving: measurements of the serving part; None if it was not measured.
        weights: measurements of the weights part; None if it was not measured.
    """
    return Summary(
        _serving(design, serving) if serving else None, _weights(weights) if weights else None
    )


def _serving(design: Design, session: ServingSession) -> ServingSummary:
    systems = {system: _system(design, system, session) for system in System}
    comparisons = tuple(_comparison(design, each, session) for each in COMPARISONS)
    return ServingSummary(session, systems, comparisons)


def _system(design: Design, system: System, session: ServingSession) -> SystemSummary:
    trials = [trial for trial in session.trials if trial.cell is system]
    return SystemSummary(
        ready_seconds=spread(trial.result.start.ready_seconds for trial in trials),
        answered_seconds=spread(trial.result.start.answered_seconds for trial in trials),
        loads={clients: _load(system, clients, session) for clients in design.concurrencies},
    )


def _load(system: System, clients: int, session: ServingSession) -> LoadSummary:
    loads = [trial.result.loads[clients] for trial in session.trials if trial.cell is system]
    latencies = [seconds for load in loads for seconds in load.all_latencies_seconds]
    return LoadSummary(spread(load.answers_per_second for load in loads), latencies_of(latencies))


def _comparison(
    design: Design, comparison: Comparison, session: ServingSession
) -> ComparisonSummary:
    ours = [trial for trial in session.trials if trial.cell is comparison.system]
    theirs = [trial for trial in session.trials if trial.cell is comparison.other]
    return ComparisonSummary(
        comparison,
        _ratio(
            [trial.result.start.ready_seconds for trial in theirs],
            [trial.result.start.ready_seconds for trial in ours],
        ),
        {
            clients: _ratio(
                [trial.result.loads[clients].answers_per_second for trial in ours],
                [trial.result.loads[clients].answers_per_second for trial in theirs],
            )
            for clients in design.concurrencies
        },
    )


def _weights(session: WeightsSession) -> WeightsSummary:
    costs = {
        transfer: [trial.result for trial in session.trials if trial.cell == transfer]
        for transfer in TRANSFERS
    }
    baseline = [cost.seconds for cost in costs[BASELINE]]
    return WeightsSummary(
        session,
        {
            transfer: TransferSummary(
                spread(cost.seconds for cost in found),
                median(cost.processor_seconds for cost in found),
                _ratio([cost.seconds for cost in found], baseline),
            )
            for transfer, found in costs.items()
        },
    )


def _ratio(values: Sequence[float], others: Sequence[float]) -> Ratio:
    """Returns the ratio of two series of trials, each with one trial per round, in order."""
    by_round = [value / other for value, other in zip(values, others, strict=True)]
    return Ratio(median(values) / median(others), min(by_round), max(by_round))
