"""The values measured in a period, and their statistics.

Metric data has three forms in moto's back end: single values, statistic sets, and a third form that
only this server adds. It holds the values of one period with how often each occurred. This server
publishes its own metrics in the third form: percentiles need the values, and keeping each value
would fill the memory under load.
"""

import math
import re
from array import array
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from moto.cloudwatch.models import MetricAggregatedDatum

# Namespace, name and dimensions of a metric.
MetricKey = tuple[str, str, frozenset[tuple[str, str]]]
STATISTICS = ("SampleCount", "Average", "Sum", "Minimum", "Maximum")
# Up to ten decimal places:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#Percentiles
_PERCENTILE = re.compile(r"p(\d{1,3}(?:\.\d{1,10})?)")


def percentile_of(statistic: str) -> float | None:
    """Returns the percentage of `p99` or `p99.9`, or None for any other text."""
    match = _PERCENTILE.fullmatch(statistic)
    percent = float(match[1]) if match else None
    return percent if percent is not None and percent <= 100 else None


class PeriodOfValues(MetricAggregatedDatum):  # type: ignore[misc]  # moto ships no type information
    """One period of one metric: a statistic set that also knows its distribution.

    It never changes once moto's back end has it; a fuller one replaces it. Its `timestamp` is
    within the period, in UTC without a time zone, as moto keeps it. `occurrences` maps a value,
    possibly rounded, to how often it occurred; `values` are in ascending order with their `counts`.
    """

    def __new__(cls, *_: Any, **__: Any) -> "PeriodOfValues":
        """Creates the object outside moto's list of all objects, which would keep every one."""
        return object.__new__(cls)

    def __init__(
        self,
        *,
        namespace: str,
        name: str,
        dimensions: list[dict[str, str]],
        start_seconds: float,
        timestamp: datetime,
        unit: str,
        total: float,
        low: float,
        high: float,
        occurrences: Mapping[float, int],
    ) -> None:
        super().__init__(
            namespace=namespace,
            name=name,
            min_stat=low,
            max_stat=high,
            sample_count=float(sum(occurrences.values())),
            sum_stat=total,
            dimensions=dimensions,
            timestamp=timestamp,
            unit=unit,
        )
        self.start_seconds = start_seconds
        ordered = sorted(occurrences.items())
        self.values = array("d", (value for value, _ in ordered))
        self.counts = array("L", (count for _, count in ordered))

    # Any: moto's classes.
    def filter(
        self,
        namespace: str | None,
        name: str | None,
        dimensions: list[dict[str, str]],
        already_present_metrics: list[Any] | None = None,
    ) -> bool:
        """Returns whether the datum is part of an answer.

        moto's GetMetricStatistics also takes data with further dimensions. In CloudWatch another
        set of dimensions is another metric. ListMetrics names the metrics that it has already, and
        finds those with further dimensions in CloudWatch too.
        """
        if already_present_metrics is None:
            wanted = {(each["Name"], each.get("Value")) for each in dimensions}
            return wanted == {(each.name, each.value) for each in self.dimensions}
        found: bool = super().filter(namespace, name, dimensions, already_present_metrics)
        return found


class Samples:
    def __init__(self) -> None:
        self.count = 0.0
        self._total = 0.0
        self._low = math.inf
        self._high = -math.inf
        # None as soon as a statistic set hides its values.
        self._occurrences: dict[float, float] | None = {}

    def add(self, datum: Any) -> None:
        if isinstance(datum, PeriodOfValues):
            self._add_set(datum.sample_count, datum.sum, datum.min, datum.max)
            self._add_values(zip(datum.values, datum.counts, strict=True))
        elif isinstance(datum, MetricAggregatedDatum):
            if datum.sample_count > 0:
                self._add_set(datum.sample_count, datum.sum, datum.min, datum.max)
                # The two cases in which percentiles of a statistic set are available:
                # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Statistics-definitions.html
                same = datum.min == datum.max and datum.sum == datum.min * datum.sample_count
                if same:
                    self._add_values([(datum.min, datum.sample_count)])
                else:
                    self._occurrences = None
        else:
            self._add_set(1, datum.value, datum.value, datum.value)
            self._add_values([(datum.value, 1)])

    def statistic(self, name: str) -> float | None:
        """Computes a statistic; None if there is no such data point.

        Nothing was measured, or, for a percentile, the values are unknown or one is negative.
        """
        if not self.count:
            return None
        values = {
            "SampleCount": self.count,
            "Average": self._total / self.count,
            "Sum": self._total,
            "Minimum": self._low,
            "Maximum": self._high,
        }
        if name in values:
            return values[name]
        percent = percentile_of(name)
        if percent is None:
            raise ValueError(f"not a statistic: {name}")
        return self._percentile(percent)

    def _percentile(self, percent: float) -> float | None:
        """Returns the nearest rank: the lowest value that `percent` of the values do not exceed.

        CloudWatch does not document how it interpolates.
        """
        if self._occurrences is None or self._low < 0:
            return None
        # The small term corrects floats: 16.1 percent of 1000 are 161 values, not
        # 161.00000000000003.
        rank = max(math.ceil(percent * self.count / 100 - 1e-9), 1)
        seen = 0.0
        value = self._high
        for value, count in sorted(self._occurrences.items()):  # noqa: B007  # the last one counts
            seen += count
            if seen >= rank:
                break
        # A rounded value may lie outside the measured range.
        return min(max(value, self._low), self._high)

    def _add_set(self, count: float, total: float, low: float, high: float) -> None:
        self.count += count
        self._total += total
        self._low = min(self._low, low)
        self._high = max(self._high, high)

    def _add_values(self, pairs: Iterable[tuple[float, float]]) -> None:
        if self._occurrences is not None:
            for value, count in pairs:
                self._occurrences[value] = self._occurrences.get(value, 0) + count


def samples_by_period(
    data: Iterable[Any], *, end_seconds: float, period_seconds: int, count: int
) -> list[Samples]:
    """Sorts one metric's data into consecutive periods, oldest first; the end is exclusive."""
    periods = [Samples() for _ in range(count)]
    begin_seconds = end_seconds - count * period_seconds
    for datum in data:
        index = math.floor((begin_of(datum) - begin_seconds) / period_seconds)
        if 0 <= index < count:
            periods[index].add(datum)
    return periods


def by_metric(
    data: Iterable[Any], metrics: Iterable[MetricKey], begin_seconds: float
) -> dict[MetricKey, list[Any]]:
    found: dict[MetricKey, list[Any]] = {metric: [] for metric in metrics}
    names = {(namespace, name) for namespace, name, _ in found}
    for datum in data:
        if (datum.namespace, datum.name) in names and begin_of(datum) >= begin_seconds:
            dimensions = frozenset((each.name, each.value) for each in datum.dimensions)
            found.get((datum.namespace, datum.name, dimensions), []).append(datum)
    return found


def begin_of(datum: Any) -> float:
    """Returns the time of a datum, in seconds since the epoch; for a period, its beginning."""
    if isinstance(datum, PeriodOfValues):
        return datum.start_seconds
    return _epoch_seconds(datum.timestamp)


def _epoch_seconds(timestamp: datetime) -> float:
    aware = timestamp if timestamp.tzinfo else timestamp.replace(tzinfo=UTC)
    return aware.timestamp()
