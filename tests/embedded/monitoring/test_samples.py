"""Metric data in its three forms, the statistics over them, and GetMetricData."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.cloudwatch.models import MetricAggregatedDatum, MetricDatum

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.monitoring.metric_data import metric_data
from slipway.embedded_aws.monitoring.samples import (
    PeriodOfValues,
    Samples,
    percentile_of,
    samples_by_period,
)

NOON = datetime(2026, 11, 21, 12)
NOON_SECONDS = NOON.replace(tzinfo=UTC).timestamp()


def value(number: float, second: float = 0) -> Any:
    timestamp = datetime.fromtimestamp(NOON_SECONDS + second, UTC).replace(tzinfo=None)
    return MetricDatum("n", "m", number, [], timestamp)


def statistic_set(low: float, high: float, count: float, total: float) -> Any:
    return MetricAggregatedDatum("n", "m", low, high, count, total, [], NOON)


def minute(*numbers: float, second: float = 30) -> PeriodOfValues:
    timestamp = datetime.fromtimestamp(NOON_SECONDS + second, UTC).replace(tzinfo=None)
    return PeriodOfValues(
        namespace="n",
        name="m",
        dimensions=[],
        start_seconds=NOON_SECONDS,
        timestamp=timestamp,
        unit="None",
        total=sum(numbers),
        low=min(numbers),
        high=max(numbers),
        occurrences=Counter(numbers),
    )


def samples(*data: Any) -> Samples:
    gathered = Samples()
    for datum in data:
        gathered.add(datum)
    return gathered


def test_statistics_join_all_forms():
    gathered = samples(value(5), statistic_set(1, 3, 3, 6), minute(4.0, 4.0, 9.0))
    expected = {"SampleCount": 7, "Sum": 28, "Average": 4, "Minimum": 1, "Maximum": 9}
    assert {name: gathered.statistic(name) for name in expected} == expected


def test_nothing_measured_is_no_data_point():
    for statistic in ("SampleCount", "Sum", "Average", "Minimum", "Maximum", "p50"):
        assert samples().statistic(statistic) is None
    assert samples(statistic_set(0, 0, 0, 0)).statistic("SampleCount") is None


@pytest.mark.parametrize(
    ("statistic", "expected"),
    [("p0", 1), ("p1", 1), ("p50", 50), ("p99", 99), ("p99.1", 100), ("p99.9", 100), ("p100", 100)],
)
def test_percentiles_are_nearest_ranks(statistic, expected):
    singles = samples(*(value(number) for number in range(100, 0, -1)))
    together = samples(minute(*map(float, range(1, 101))))
    assert singles.statistic(statistic) == together.statistic(statistic) == expected


def test_percentiles_are_exact_and_stay_within_what_was_measured():
    # 16.1 * 1000 / 100 is a little more than 161.
    assert samples(*map(value, range(1, 1001))).statistic("p16.1") == 161
    # A rounded value.
    datum = minute(123_456.0)
    datum.values[0] = 123_000.0
    assert samples(datum).statistic("p99") == 123_456.0


def test_statistic_set_hides_its_percentiles():
    assert samples(value(1), statistic_set(1, 3, 3, 6)).statistic("p50") is None
    # Unless all its values are the same.
    assert samples(value(1), statistic_set(2, 2, 3, 6)).statistic("p50") == 2
    assert samples(statistic_set(2, 2, 1, 2)).statistic("p99") == 2
    assert samples(statistic_set(2, 2, 3, 7)).statistic("p99") is None


def test_negative_values_have_no_percentiles():
    assert samples(value(-1), value(5)).statistic("p99") is None
    assert samples(value(-1), value(5)).statistic("Average") == 2


@given(st.lists(st.floats(0, 1e9), min_size=1), st.floats(0, 100))
def test_percentile_leaves_its_share_at_or_below(numbers, percent):
    text = f"p{percent:.4f}"
    found = samples(*map(value, numbers)).statistic(text)
    assert found in numbers
    share = float(text[1:]) / 100
    assert sum(number <= found for number in numbers) >= share * len(numbers) - 1e-6
    assert sum(number < found for number in numbers) <= share * len(numbers) + 1e-6


READ = {"p99": 99.0, "p99.9": 99.9, "p0": 0.0, "p100": 100.0, "p95.0123456789": 95.0123456789}
OTHERS = (
    *("p100.1", "p101", "p", "p-1", "P99", "p9.12345678901", " p1"),
    *("tm99", "IQM", "PR(1:2)", "Average"),
)


def test_percentiles_are_read_and_other_statistics_are_none():
    assert {text: percentile_of(text) for text in READ} == READ
    assert [text for text in OTHERS if percentile_of(text) is not None] == []


def test_periods_include_their_beginning_and_not_their_end():
    data = [value(2**n, second) for n, second in enumerate((-60, -0.001, 0, 59.999, 60, 119.9))]
    sums = [
        period.statistic("Sum")
        for period in samples_by_period(
            data, end_seconds=NOON_SECONDS + 120, period_seconds=60, count=2
        )
    ]
    assert sums == [4 + 8, 16 + 32]


def test_minute_counts_at_its_beginning():
    periods = samples_by_period(
        [minute(3.0, second=45)], end_seconds=NOON_SECONDS + 60, period_seconds=10, count=6
    )
    assert [period.count for period in periods] == [1, 0, 0, 0, 0, 0]


def test_times_with_a_zone_count_too():
    datum = value(1)
    datum.timestamp = datetime(2026, 11, 21, 12, 0, 30, tzinfo=UTC)
    (period,) = samples_by_period(
        [datum], end_seconds=NOON_SECONDS + 60, period_seconds=60, count=1
    )
    assert period.count == 1


START = datetime(2026, 11, 28, 12, 7, 30, tzinfo=UTC)
DIMENSIONS = [{"Name": "EndpointName", "Value": "tiny"}]


def datum(second: int, value: float, **members: Any) -> Any:
    pair = SimpleNamespace(name="EndpointName", value=members.pop("endpoint", "tiny"))
    usual = {"namespace": "AWS/SageMaker", "name": "ModelLatency", "unit": "Microseconds"}
    moment = START.replace(second=0) + timedelta(seconds=second)
    return SimpleNamespace(timestamp=moment, value=value, dimensions=[pair], **(usual | members))


def query(stat: str = "Sum", period: int = 60, **members: Any) -> dict[str, Any]:
    metric = {
        "Namespace": "AWS/SageMaker", "MetricName": "ModelLatency", "Dimensions": DIMENSIONS
    }  # fmt: skip
    return {"Id": "q1", "MetricStat": {"Metric": metric, "Period": period, "Stat": stat}, **members}


def asked(data: list[Any], *queries: dict[str, Any], **parameters: Any) -> list[dict[str, Any]]:
    end = START + timedelta(hours=1)
    usual = {"StartTime": START, "EndTime": end, "MetricDataQueries": list(queries)}
    return metric_data(data, usual | parameters)


DATA = [
    *(datum(second, float(second)) for second in range(0, 120, 1)),
    datum(10, 1000.0, endpoint="another"),
    datum(10, 1000.0, name="OverheadLatency"),
    datum(-1, 1000.0),
    datum(3600, 1000.0, unit="None"),
]


def test_periods_begin_with_the_minute_of_the_start_and_the_latest_is_first():
    (found,) = asked(DATA, query())
    assert (found["Id"], found["Label"], found["StatusCode"]) == ("q1", "ModelLatency", "Complete")
    first = START.replace(second=0)
    assert found["Timestamps"] == [first + timedelta(hours=1), first + timedelta(minutes=1), first]
    assert found["Values"] == [1000.0, sum(range(60, 120)), sum(range(60))]
    (oldest_first,) = asked(DATA, query(), ScanBy="TimestampAscending")
    assert oldest_first["Values"] == found["Values"][::-1]


def test_percentiles_are_of_all_values_of_the_metric_alone():
    (found,) = asked(DATA[:-1], query("p50", 3600))
    assert found["Values"] == [59.0]
    (found,) = asked(DATA[:-1], query("p99", 3600))
    assert found["Values"] == [118.0]
    assert asked([], query())[0]["Values"] == []
    assert asked(DATA, query(ReturnData=False)) == []


@pytest.mark.parametrize(
    ("queries", "parameters", "message"),
    [
        ([{"Id": "q1", "Expression": "q2 + q3"}], {}, "not for expressions"),
        ([query("tm99")], {}, "does not compute the statistic tm99"),
        ([query()] * 501, {}, "at most 500 queries"),
        ([query()], {"EndTime": START}, "StartTime must be less"),
    ],
)
def test_what_is_not_answered_is_refused(queries, parameters, message):
    with pytest.raises(ApiError, match=message):
        asked([], *queries, **parameters)
