"""GetMetricData: which values count in which period, and what is refused."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from slipway.embedded_aws.api import ApiError
from slipway.embedded_aws.monitoring.metric_data import metric_data

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
