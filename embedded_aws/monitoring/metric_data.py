"""GetMetricData's answer: statistics of periods, percentiles too, which moto does not compute.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.monitoring.samples import (
    STATISTICS,
    MetricKey,
    by_metric,
    percentile_of,
    samples_by_period,
)

_MOST_QUERIES = 500
_MINUTE_SECONDS = 60
_INVALID = "ValidationError"


def metric_data(data: Iterable[Any], parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns a request's MetricDataResults; raises `ApiError` for what is not computed here."""
    queries = parameters["MetricDataQueries"]
    if len(queries) > _MOST_QUERIES:
        raise ApiError(_INVALID, f"A request has at most {_MOST_QUERIES} queries.")
    start, end = (parameters[name].timestamp() for name in ("StartTime", "EndTime"))
    if start >= end:
        raise ApiError(_INVALID, "The parameter StartTime must be less than the parameter EndTime.")
    found = by_metric(data, map(_key, map(_stat, queries)), start - _MINUTE_SECONDS)
    is_ascending = parameters.get("ScanBy") == "TimestampAscending"
    results = []
    for query in queries:
        if query.get("ReturnData", True):
            points = list(_points(_stat(query), found, start, end))
            points = points if is_ascending else points[::-1]
            label = query.get("Label") or _stat(query)["Metric"]["MetricName"]
            results.append(
                {
                    "Id": query["Id"],
                    "Label": label,
                    "Timestamps": [moment for moment, _ in points],
                    "Values": [value for _, value in points],
                    "StatusCode": "Complete",
                }
            )
    return results


def _stat(query: Mapping[str, Any]) -> dict[str, Any]:
    if (stat := query.get("MetricStat")) is None:
        message = "The embedded AWS answers GetMetricData for metrics, and not for expressions."
        raise ApiError(_INVALID, message)
    if stat["Stat"] not in STATISTICS and percentile_of(stat["Stat"]) is None:
        raise ApiError(_INVALID, f"The embedded AWS does not compute the statistic {stat['Stat']}.")
    found: dict[str, Any] = stat
    return found


def _key(stat: Mapping[str, Any]) -> MetricKey:
    metric = stat["Metric"]
    pairs = frozenset((each["Name"], each["Value"]) for each in metric.get("Dimensions", ()))
    return metric["Namespace"], metric["MetricName"], pairs


def _points(
    stat: Mapping[str, Any], found: Mapping[MetricKey, list[Any]], start: float, end: float
) -> Iterator[tuple[datetime, float]]:
    """Periods are aligned to StartTime's minute: https://github.com/boto/boto3/issues/3457."""
    period, first = stat["Period"], start - start % _MINUTE_SECONDS
    count = math.ceil((end - first) / period)
    unit = stat.get("Unit")
    data = [each for each in found[_key(stat)] if unit in (None, each.unit)]
    samples = samples_by_period(
        data, end_seconds=first + count * period, period_seconds=period, count=count
    )
    for index, each in enumerate(samples):
        if (value := each.statistic(stat["Stat"])) is not None:
            yield datetime.fromtimestamp(first + index * period, UTC), value
