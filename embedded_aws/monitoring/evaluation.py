"""The state of an alarm, from its data points. Pure functions: no clock, no back end.

The rules, and the tables that the tests compare with:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from slipway.embedded_aws.monitoring.definitions import AlarmDefinition, Comparison, Missing
from slipway.embedded_aws.monitoring.metric_math import compute
from slipway.embedded_aws.monitoring.samples import Samples

# CloudWatch retrieves more periods than it evaluates, to find points when the latest are missing.
# The number is not documented; its examples have 5 for 3 evaluation periods.
_EXTRA_PERIODS = 2
_COMPARE = {
    Comparison.GREATER_OR_EQUAL: operator.ge,
    Comparison.GREATER: operator.gt,
    Comparison.LESS: operator.lt,
    Comparison.LESS_OR_EQUAL: operator.le,
}


class State(StrEnum):
    """The values of an alarm's StateValue."""

    OK = "OK"
    ALARM = "ALARM"
    INSUFFICIENT_DATA = "INSUFFICIENT_DATA"


@dataclass(frozen=True)
class Datapoint:
    """One period as an alarm sees it.

    Attributes:
        start: beginning of the period, in UTC.
        value: None if it is missing.
        sample_count: samples of a metric; None for a formula, or if the value is missing.
    """

    start: datetime
    value: float | None
    sample_count: float | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of an evaluation.

    Attributes:
        evaluated: the data points that decided it, latest first, one per evaluation period. If the
            evaluation range has fewer, the latest missing points fill up.
        crossing: those evaluated points that support the state.
    """

    state: State
    evaluated: tuple[Datapoint, ...]
    crossing: tuple[Datapoint, ...]


def range_periods(definition: AlarmDefinition) -> int:
    return definition.evaluation_periods + _EXTRA_PERIODS


def datapoints_of(
    definition: AlarmDefinition,
    samples: Mapping[str, Sequence[Samples]],
    starts: Sequence[datetime],
) -> list[Datapoint]:
    """Computes the data points that an alarm watches.

    `samples` maps a metric's Id to its samples in each period, oldest first; `starts` are the
    beginnings of the periods.
    """
    results = {
        identifier: tuple(period.statistic(source.statistic) for period in samples[identifier])
        for identifier, source in definition.metrics.items()
    }
    for identifier, formula in definition.expressions.items():
        results[identifier] = compute(formula, results)
    counted = samples.get(definition.watched)
    counts = [period.count for period in counted] if counted else [None] * len(starts)
    return [
        Datapoint(start, value, None if value is None else count)
        for start, value, count in zip(starts, results[definition.watched], counts, strict=True)
    ]


def evaluate(definition: AlarmDefinition, points: Sequence[Datapoint]) -> Verdict | None:
    """Decides an alarm's state from its evaluation range, oldest first; None: it stays."""
    periods = definition.evaluation_periods
    needed = definition.datapoints_to_alarm or periods
    if definition.minimum_samples:
        samples = sum(point.sample_count or 0 for point in points[-periods:])
        if samples < definition.minimum_samples:
            return None
    existing = [point for point in points if point.value is not None][-periods:]
    evaluated = _evaluated(points, existing, periods)
    breaching = tuple(p for p in evaluated if _breaches(definition, p))
    calm = tuple(p for p in evaluated if p.value is not None and p not in breaching)
    alarm = Verdict(State.ALARM, evaluated, breaching)
    fine = Verdict(State.OK, evaluated, calm)
    missing = periods - len(existing)
    assumed = missing if definition.missing is Missing.BREACHING else 0
    if len(breaching) + assumed >= needed:
        return alarm
    undecided = missing and not calm and definition.missing in (Missing.MISSING, Missing.IGNORE)
    if not undecided:
        return fine
    if definition.missing is Missing.IGNORE:
        return None
    # Points before the oldest breaching point are not in the evaluated periods any more, and no
    # later point speaks against an alarm.
    if breaching and _age(points, breaching[-1]) >= needed:
        return alarm
    return Verdict(State.INSUFFICIENT_DATA, evaluated, ())


def _evaluated(
    points: Sequence[Datapoint], existing: Sequence[Datapoint], periods: int
) -> tuple[Datapoint, ...]:
    absent = [point for point in points if point.value is None]
    filling = absent[len(absent) - (periods - len(existing)) :]
    chosen = sorted([*existing, *filling], key=lambda point: point.start, reverse=True)
    return tuple(chosen)


def _breaches(definition: AlarmDefinition, point: Datapoint) -> bool:
    compare = _COMPARE[definition.comparison]
    return point.value is not None and bool(compare(point.value, definition.threshold))


def _age(points: Sequence[Datapoint], point: Datapoint) -> int:
    """Returns how many periods back a point is: the latest is 1."""
    return len(points) - points.index(point)
