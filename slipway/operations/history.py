"""What an endpoint did in the last hours: requests, errors, answer times, instances or copies.

A period without a data point is a gap, never a zero: SageMaker sends values with requests alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from slipway.access import Access
from slipway.config.alarms_of_modes import QUEUE
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.deployed.traffic import METRICS, Query, account_time, find_values
from slipway.operations.plots import Plot, Series, Values
from slipway.operations.status.report import EndpointStatus
from slipway.planning.component import SCALE_TO_ZERO

MOST_HOURS: Final = 7 * 24
# Hours, and the period of a plot of at most so many. A line has at most 288 points.
_PERIODS: Final = ((3, 60), (24, 300), (MOST_HOURS, 3600))
_MINUTE_SECONDS: Final = 60
_MICROSECONDS: Final = 1000


@dataclass(frozen=True)
class History:
    """Values of consecutive periods; None where CloudWatch has none.

    `start` is of the first period, in UTC, and `end` is in the last one. Requests and errors are a
    minute; requests include those with an error. Percentiles are of the slowest variant. `sizes`
    are how many `instances` or `copies` there were, by variant.
    """

    start: datetime
    end: datetime
    period_seconds: int
    requests: Values
    errors: Values
    p50_milliseconds: Values
    p99_milliseconds: Values
    counted: str
    sizes: Mapping[str, Values]

    def plots(self) -> list[Plot]:
        times = (Series("p50", self.p50_milliseconds), Series("p99", self.p99_milliseconds))
        sizes = tuple(Series(name, values) for name, values in self.sizes.items())
        shown = (
            ("Requests", "a minute", (Series("requests", self.requests),)),
            # Few among many requests would not be seen.
            ("Server errors", "a minute", (Series("5XX", self.errors),)),
            ("Time to answer", "milliseconds", times),
            (self.counted.capitalize(), "count", sizes),
        )
        return [Plot(*each, self.start, self.period_seconds) for each in shown]


def find_history(access: Access, endpoint: EndpointStatus, hours: int) -> History:
    """Returns the history of an endpoint, or of the copies on it, until now."""
    now = account_time(access.client("sts"))
    period = next(seconds for most, seconds in _PERIODS if hours <= most)
    count = hours * 3600 // period
    # The last period is the one that has begun.
    begin = int(now.timestamp()) // period * period
    start = datetime.fromtimestamp(begin - (count - 1) * period, UTC)
    watched, sizes = endpoint.watched, dict(_size_queries(endpoint))
    queries = [
        *(one.query(name) for one in watched for name in METRICS),
        *(query for pair in sizes.values() for query in pair),
    ]
    cloudwatch = access.client("cloudwatch")
    answers = find_values(cloudwatch, queries, period, start, now)
    found = (_placed(*each, start, period, count) for each in answers)
    variants = [{name: next(found) for name in METRICS} for _ in watched]
    # A period that has just begun has the requests of its first minute at least.
    minutes = [period / _MINUTE_SECONDS] * count
    minutes[-1] = max(now.timestamp() - begin, _MINUTE_SECONDS) / _MINUTE_SECONDS

    def joined(name: str, join: Any) -> Values:
        # An endpoint that failed at its creation has no variants.
        columns = ([each[name][place] for each in variants] for place in range(count))
        known = ([value for value in column if value is not None] for column in columns)
        return [join(values) if values else None for values in known]

    def rate(name: str) -> Values:
        return [
            None if value is None else value / length
            for value, length in zip(joined(name, sum), minutes, strict=True)
        ]

    def milliseconds(name: str) -> Values:
        return [None if value is None else value / _MICROSECONDS for value in joined(name, max)]

    return History(
        start,
        now,
        period,
        rate("requests"),
        rate("errors"),
        milliseconds("p50"),
        milliseconds("p99"),
        "instances" if endpoint.component is None else "copies",
        {name: _quotients(next(found), next(found)) for name in sizes},
    )


def _size_queries(endpoint: EndpointStatus) -> Iterator[tuple[str, tuple[Query, ...]]]:
    """Yields the two metrics whose quotient is the size of a variant: AWS publishes no number."""
    mode = "realtime" if endpoint.answers is None else "async"
    watch = CAPACITY_WATCHES[SCALE_TO_ZERO if endpoint.component is not None else mode]
    # A queue is the whole endpoint's.
    watched = [
        {"EndpointName": endpoint.name} if watch.group is QUEUE else each.dimensions
        for each in endpoint.watched
    ]
    for dimensions in watched[: 1 if watch.group is QUEUE else None]:
        name = dimensions.get("VariantName", watch.formulas[0].query)
        label = name if len(watched) > 1 else watch.formulas[0].query
        yield label, tuple(Query(dimensions, each.name, each.statistic) for each in watch.metrics)


def _placed(
    times: Sequence[datetime], values: Sequence[float], start: datetime, period: int, count: int
) -> Values:
    known = dict(zip(times, values, strict=True))
    return [known.get(start + timedelta(seconds=index * period)) for index in range(count)]


def _quotients(wholes: Values, shares: Values) -> Values:
    return [
        round(whole / share, 2) if whole is not None and share else None
        for whole, share in zip(wholes, shares, strict=True)
    ]
