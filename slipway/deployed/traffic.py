"""The requests of endpoints and copies, from CloudWatch's metrics.

GetMetricData answers for many endpoints at once
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, Final, NamedTuple

_MOST_QUERIES: Final = 500
_HOUR_SECONDS: Final = 3600
# CloudWatch keeps values of a minute for 15 days.
IDLE_DAYS: Final = 14
_NAMESPACE: Final = "AWS/SageMaker"
_MICROSECONDS: Final = 1000.0


@dataclass(frozen=True)
class Watched:
    """The metrics of a variant, or of the copies of a component; a queue has other ones."""

    dimensions: Mapping[str, str]
    is_async: bool = False

    def query(self, name: str) -> "Query":
        metrics = _ASYNC_METRICS if self.is_async else METRICS
        return Query(self.dimensions, *metrics[name])


class Query(NamedTuple):
    """A statistic, such as `Sum` or `p99`, of one metric in the namespace `AWS/SageMaker`."""

    dimensions: Mapping[str, str]
    metric: str
    statistic: str


@dataclass(frozen=True)
class Traffic:
    """The requests of the last hour, and those of them that were answered with 5XX.

    The percentiles are of the container's answer time; None without requests.
    """

    request_count: int
    error_count: int
    p50_milliseconds: float | None
    p99_milliseconds: float | None


# Metric and statistic, by what `Traffic` has of it.
METRICS: Final = {
    "requests": ("Invocations", "Sum"),
    "errors": ("Invocation5XXErrors", "Sum"),
    "p50": ("ModelLatency", "p50"),
    "p99": ("ModelLatency", "p99"),
}
# See `slipway/config/alarms_of_modes.py`: one value for each request that leaves the queue.
_ASYNC_METRICS: Final = {**METRICS, "requests": ("TimeInBacklog", "SampleCount")}


def account_time(sts: Any) -> datetime:
    """Returns the time of AWS's servers, whatever this machine's clock says; needs no rights."""
    answer = sts.get_caller_identity()
    return parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])


def watched_metrics(
    endpoint: str, variants: Sequence[str], component: str | None, *, is_async: bool
) -> list[Watched]:
    if component is not None:
        return [Watched({"InferenceComponentName": component})]
    return [Watched({"EndpointName": endpoint, "VariantName": each}, is_async) for each in variants]


def find_traffic(
    cloudwatch: Any, watched: Sequence[Sequence[Watched]], now: datetime
) -> list[Traffic]:
    """Returns the traffic of each endpoint or component.

    The requests of its variants or copies are added, and the slowest percentile counts.
    """
    queries = [one.query(name) for each in watched for one in each for name in METRICS]
    start = now - timedelta(seconds=_HOUR_SECONDS)
    values = find_values(cloudwatch, queries, _HOUR_SECONDS, start, now)
    return [
        _traffic([{name: next(values)[1] for name in METRICS} for _ in each]) for each in watched
    ]


def _traffic(variants: Sequence[Mapping[str, Sequence[float]]]) -> Traffic:
    def total(name: str) -> int:
        return round(sum(sum(each[name]) for each in variants))

    def slowest(name: str) -> float | None:
        found = [value for each in variants for value in each[name]]
        return max(found) / _MICROSECONDS if found else None

    return Traffic(total("requests"), total("errors"), slowest("p50"), slowest("p99"))


def last_requests(
    cloudwatch: Any, watched: Sequence[Sequence[Watched]], now: datetime
) -> list[datetime | None]:
    """Returns the hour of the last request of each; None where there is none for `IDLE_DAYS`."""
    queries = [one.query("requests") for each in watched for one in each]
    start = now - timedelta(days=IDLE_DAYS)
    answers = find_values(cloudwatch, queries, _HOUR_SECONDS, start, now)
    found: list[datetime | None] = []
    for each in watched:
        moments = [
            moment for _ in each for moment, count in zip(*next(answers), strict=True) if count > 0
        ]
        found.append(max(moments, default=None))
    return found


def find_values(
    cloudwatch: Any,
    queries: Sequence[Query],
    period_seconds: int,
    start: datetime,
    end: datetime,
) -> Iterator[tuple[list[datetime], list[float]]]:
    for first in range(0, len(queries), _MOST_QUERIES):
        some = queries[first : first + _MOST_QUERIES]
        asked: list[dict[str, Any]] = [
            {"Id": f"q{number}", "MetricStat": _metric_stat(query, period_seconds)}
            for number, query in enumerate(some)
        ]
        found: dict[str, tuple[list[datetime], list[float]]] = {
            each["Id"]: ([], []) for each in asked
        }
        pages = cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=asked, StartTime=start, EndTime=end
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                times, values = found[result["Id"]]
                times.extend(each.astimezone(UTC) for each in result["Timestamps"])
                values.extend(result["Values"])
        yield from found.values()


def _metric_stat(query: Query, period_seconds: int) -> dict[str, Any]:
    pairs = [{"Name": key, "Value": value} for key, value in query.dimensions.items()]
    metric = {"Namespace": _NAMESPACE, "MetricName": query.metric, "Dimensions": pairs}
    return {"Metric": metric, "Period": period_seconds, "Stat": query.statistic}
