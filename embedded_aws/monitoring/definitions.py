"""The comparison of an alarm: read from PutMetricAlarm's members, and checked.

Refusals use CloudWatch's own wording if users have quoted it.
"""

import json
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from moto.core.serialize import JSONSerializer, XFormedAttributePicker
from moto.core.utils import get_service_model

from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.metric_math import Formula, FormulaError, names_in, parse
from slipway.embedded_aws.monitoring.samples import STATISTICS, MetricKey, percentile_of

DAY_SECONDS = 86_400
_HOUR_SECONDS = 3_600
_MAX_METRICS = 10
_IDENTIFIER = re.compile(r"[a-z][A-Za-z0-9_]*")
# The Id of the metric of an alarm without Metrics; it cannot clash with a user's Id.
_ONLY_METRIC = "_metric"
# Its metrics have no points while nothing happens: by default, CloudWatch ignores missing points.
_IGNORED_NAMESPACE = "AWS/DynamoDB"
# Members of PutMetricAlarm that describe one metric, and are not allowed beside Metrics.
_SINGLE_METRIC = (
    "MetricName",
    "Namespace",
    "Dimensions",
    "Period",
    "Unit",
    "Statistic",
    "ExtendedStatistic",
)
_EVALUATED = frozenset(
    {
        *_SINGLE_METRIC,
        "ActionsEnabled",
        "AlarmActions",
        "AlarmDescription",
        "AlarmName",
        "ComparisonOperator",
        "DatapointsToAlarm",
        "EvaluateLowSampleCountPercentile",
        "EvaluationPeriods",
        "InsufficientDataActions",
        "Metrics",
        "OKActions",
        "Tags",
        "Threshold",
        "TreatMissingData",
    }
)


class Comparison(StrEnum):
    """The static comparison operators; operators of anomaly bands are not evaluated."""

    GREATER_OR_EQUAL = "GreaterThanOrEqualToThreshold"
    GREATER = "GreaterThanThreshold"
    LESS = "LessThanThreshold"
    LESS_OR_EQUAL = "LessThanOrEqualToThreshold"


class Missing(StrEnum):
    MISSING = "missing"
    IGNORE = "ignore"
    BREACHING = "breaching"
    NOT_BREACHING = "notBreaching"


class AlarmRefusedError(Exception):
    """The alarm is wrong, or not evaluated here; the message is for the alarm's author."""


@dataclass(frozen=True)
class MetricSource:
    """The source of one metric's data points.

    Attributes:
        dimensions: all of the metric's dimensions: another set is another metric.
        statistic: one of `STATISTICS` or a percentile.
        unit: the only unit that counts, or None for every unit.
    """

    namespace: str
    name: str
    dimensions: frozenset[tuple[str, str]]
    statistic: str
    unit: str | None

    @property
    def key(self) -> MetricKey:
        return self.namespace, self.name, self.dimensions


@dataclass(frozen=True)
class AlarmDefinition:
    """The parts of an alarm that its evaluation uses.

    Attributes:
        metrics: maps an Id to its source.
        expressions: maps an Id to its formula; a formula comes after those that it refers to.
        watched: Id of the metric or formula that is compared.
        evaluation_periods: N of "M out of N".
        datapoints_to_alarm: M, or None if the alarm does not set it.
        threshold: value in the unit of the watched metric or formula.
        missing: how a missing data point counts.
        minimum_samples: with fewer samples in the evaluated periods, the state does not change.
    """

    metrics: Mapping[str, MetricSource]
    expressions: Mapping[str, Formula]
    watched: str
    period_seconds: int
    evaluation_periods: int
    datapoints_to_alarm: int | None
    comparison: Comparison
    threshold: float
    missing: Missing
    minimum_samples: float = 0.0


def definition_of(alarm: Mapping[str, Any]) -> AlarmDefinition:
    """Returns the definition of an alarm, given PutMetricAlarm's members: None counts as absent."""
    given = {name: value for name, value in alarm.items() if value not in (None, [])}
    for name in sorted(set(given) - _EVALUATED):
        raise AlarmRefusedError(f"The embedded AWS does not evaluate alarms with {name}.")
    comparison = _comparison(given)
    if "Metrics" in given:
        metrics, expressions, watched, period_seconds = _queries(given)
    else:
        metrics, period_seconds = _single_metric(given)
        expressions, watched = {}, _ONLY_METRIC
    evaluation_periods = _required(given, "EvaluationPeriods")
    datapoints = given.get("DatapointsToAlarm")
    if datapoints is not None and datapoints > evaluation_periods:
        raise AlarmRefusedError(
            f"DatapointsToAlarm ({datapoints}) must not be greater than EvaluationPeriods "
            f"({evaluation_periods})."
        )
    _check_length(period_seconds, evaluation_periods)
    dynamodb = any(source.namespace == _IGNORED_NAMESPACE for source in metrics.values())
    default = Missing.IGNORE if dynamodb else Missing.MISSING
    missing = _choice(given, "TreatMissingData", [m.value for m in Missing], default.value)
    low = _choice(given, "EvaluateLowSampleCountPercentile", ["evaluate", "ignore"], "evaluate")
    source = metrics.get(watched)
    return AlarmDefinition(
        metrics=metrics,
        expressions=expressions,
        watched=watched,
        period_seconds=period_seconds,
        evaluation_periods=evaluation_periods,
        datapoints_to_alarm=datapoints,
        comparison=comparison,
        threshold=float(_required(given, "Threshold")),
        missing=Missing(missing),
        minimum_samples=_minimum_samples(source) if source and low == "ignore" else 0.0,
    )


def described(alarm: Any) -> dict[str, Any]:
    """Returns an alarm of moto with the members of PutMetricAlarm that have a value."""
    model = get_service_model("cloudwatch")
    picker = XFormedAttributePicker()
    serializer = JSONSerializer(model.operation_model("DescribeAlarms"), value_picker=picker)
    (found,) = json.loads(serializer.serialize({"MetricAlarms": [alarm]})["body"])["MetricAlarms"]
    put = model.operation_model("PutMetricAlarm").input_shape.members
    return {name: value for name, value in found.items() if name in put}


def _comparison(given: Mapping[str, Any]) -> Comparison:
    name = _required(given, "ComparisonOperator")
    try:
        return Comparison(name)
    except ValueError:
        raise AlarmRefusedError(
            f"The embedded AWS does not evaluate {name}: it has no anomaly detection. It evaluates "
            f"{', '.join(Comparison)}."
        ) from None


def _single_metric(given: Mapping[str, Any]) -> tuple[dict[str, MetricSource], int]:
    statistic = given.get("Statistic")
    extended = given.get("ExtendedStatistic")
    if (statistic is None) == (extended is None):
        raise AlarmRefusedError(
            "An alarm on a metric needs either Statistic or ExtendedStatistic, and not both."
        )
    source = MetricSource(
        namespace=_required(given, "Namespace"),
        name=_required(given, "MetricName"),
        dimensions=_dimensions(given),
        statistic=_statistic(statistic or extended or ""),
        unit=given.get("Unit"),
    )
    return {_ONLY_METRIC: source}, _period(_required(given, "Period"))


def _queries(
    given: Mapping[str, Any],
) -> tuple[dict[str, MetricSource], dict[str, Formula], str, int]:
    for name in _SINGLE_METRIC:
        if name in given:
            raise AlarmRefusedError(f"{name} should not be set if list of Metrics is set.")
    queries: Sequence[Mapping[str, Any]] = given["Metrics"]
    # The default is true:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDataQuery.html
    returned = [query for query in queries if query.get("ReturnData") in (None, True)]
    if len(returned) != 1:
        raise AlarmRefusedError("Exactly one element of the metrics list should return data.")
    metrics: dict[str, MetricSource] = {}
    formulas: dict[str, Formula] = {}
    periods: set[int] = set()
    for query in queries:
        identifier = query.get("Id") or ""
        if not _IDENTIFIER.fullmatch(identifier) or identifier in {*metrics, *formulas}:
            raise AlarmRefusedError(
                f'"{identifier}" is not an Id: it begins with a lowercase letter, goes on with '
                "letters, digits and underscores, and each is there once."
            )
        if query.get("AccountId") not in (None, ACCOUNT_ID):
            raise AlarmRefusedError(
                f"The embedded AWS has no metrics of account {query['AccountId']}."
            )
        described, expression = query.get("MetricStat"), query.get("Expression")
        if (described is None) == (expression is None):
            raise AlarmRefusedError(f'"{identifier}" needs either MetricStat or Expression.')
        if query.get("Period") is not None:
            periods.add(_period(query["Period"]))
        if described is not None:
            metrics[identifier] = _metric_stat(described)
            periods.add(_period(_required(described, "Period")))
        else:
            formulas[identifier] = _parsed(identifier, str(expression))
    if not metrics or len(metrics) > _MAX_METRICS:
        raise AlarmRefusedError(
            f"An alarm watches 1 to {_MAX_METRICS} metrics; this one has {len(metrics)}."
        )
    if len(periods) != 1:
        raise AlarmRefusedError(
            f"All metrics of an alarm need the same Period; these have {sorted(periods)}."
        )
    watched = str(returned[0]["Id"])
    (period_seconds,) = periods
    return metrics, _ordered(formulas, metrics), watched, period_seconds


def _metric_stat(described: Mapping[str, Any]) -> MetricSource:
    metric = _required(described, "Metric")
    return MetricSource(
        namespace=_required(metric, "Namespace"),
        name=_required(metric, "MetricName"),
        dimensions=_dimensions(metric),
        statistic=_statistic(_required(described, "Stat")),
        unit=described.get("Unit"),
    )


def _parsed(identifier: str, expression: str) -> Formula:
    try:
        return parse(expression)
    except FormulaError as error:
        raise AlarmRefusedError(
            f'The embedded AWS cannot evaluate "{identifier}" ({expression}): {error}.'
        ) from None


def _ordered(formulas: Mapping[str, Formula], metrics: Container[str]) -> dict[str, Formula]:
    """Sorts formulas so that each comes after the formulas that it refers to."""
    for identifier, formula in formulas.items():
        for name in sorted(names_in(formula)):
            if name not in metrics and name not in formulas:
                raise AlarmRefusedError(f'"{identifier}" refers to "{name}", which is no Id.')
    sorter = TopologicalSorter(
        {
            identifier: names_in(formula) & formulas.keys()
            for identifier, formula in formulas.items()
        }
    )
    try:
        return {identifier: formulas[identifier] for identifier in sorter.static_order()}
    except CycleError as error:
        circle = ", ".join(sorted({*error.args[1]}))
        raise AlarmRefusedError(f"These expressions refer to one another: {circle}.") from None


def _dimensions(holder: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    return frozenset((item["Name"], item["Value"]) for item in holder.get("Dimensions") or ())


def _statistic(name: str) -> str:
    if name not in STATISTICS and percentile_of(name) is None:
        raise AlarmRefusedError(
            f"The embedded AWS does not compute the statistic {name}; it computes "
            f"{', '.join(STATISTICS)} and percentiles from p0 to p100."
        )
    return name


def _period(seconds: int) -> int:
    if seconds not in (10, 20, 30) and (seconds <= 0 or seconds % 60):
        raise AlarmRefusedError(f"Period must be 10, 20, 30 or a multiple of 60; it is {seconds}.")
    return seconds


def _check_length(period_seconds: int, evaluation_periods: int) -> None:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
    longest_seconds = DAY_SECONDS if period_seconds < _HOUR_SECONDS else 7 * DAY_SECONDS
    if period_seconds * evaluation_periods > longest_seconds:
        raise AlarmRefusedError(
            f"Period ({period_seconds}) times EvaluationPeriods ({evaluation_periods}) must not be "
            f"greater than {longest_seconds} seconds."
        )


def _minimum_samples(source: MetricSource) -> float:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/percentiles-with-low-samples.html
    percent = percentile_of(source.statistic)
    if percent is None or percent in (0, 100):
        return 0.0
    return 1000 / (100 - percent) if percent >= 50 else 1000 / percent


def _choice(given: Mapping[str, Any], name: str, allowed: Sequence[str], default: str) -> str:
    value: str = given.get(name, default)
    if value not in allowed:
        raise AlarmRefusedError(
            f"Option {value} is not supported. Supported options for parameter {name} are "
            f"{', '.join(allowed)}."
        )
    return value


def _required(holder: Mapping[str, Any], name: str) -> Any:
    value = holder.get(name)
    if value is None:
        raise AlarmRefusedError(f"{name} must not be null.")
    return value
