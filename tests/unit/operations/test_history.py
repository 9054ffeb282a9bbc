"""The history of an endpoint, from what CloudWatch answers."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, cast

import pytest

from slipway.access import Access
from slipway.deployed.served import Served
from slipway.deployed.traffic import find_traffic
from slipway.operations.history import find_history
from slipway.operations.status.component import Component
from slipway.operations.status.report import EndpointStatus, Variant

NOW = datetime(2026, 11, 28, 20, 7, 30, tzinfo=UTC)
Points = Mapping[tuple[str, str, str], Mapping[int, float]]
"""By metric, statistic and last dimension: values by the minutes before the minute of now."""


class Account:
    """CloudWatch with some data, and the time of STS."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self.periods: set[int] = set()

    def client(self, _: str) -> "Account":
        return self

    def get_caller_identity(self) -> Any:
        date = format_datetime(NOW, usegmt=True)
        return {"ResponseMetadata": {"HTTPHeaders": {"date": date}}}

    def get_paginator(self, _: str) -> "Account":
        return self

    def paginate(self, **asked: Any) -> Iterator[Any]:
        for query in asked["MetricDataQueries"]:
            stat = query["MetricStat"]
            self.periods.add(stat["Period"])
            metric = stat["Metric"]
            key = metric["MetricName"], stat["Stat"], metric["Dimensions"][-1]["Value"]
            found = {
                NOW.replace(second=0) - timedelta(minutes=minutes): value
                for minutes, value in self._points.get(key, {}).items()
            }
            assert all(asked["StartTime"] <= each < asked["EndTime"] for each in found)
            result = {"Id": query["Id"], "Timestamps": [*found], "Values": [*found.values()]}
            yield {"MetricDataResults": [result]}


def endpoint(*variants: str, answers: str | None = None, copies: bool = False) -> EndpointStatus:
    component = Component("ranker", "InService", NOW, None, 1, 1, 4, None) if copies else None
    return EndpointStatus(
        name="ranker",
        status="InService",
        changed=NOW,
        failure_reason=None,
        served=Served("config"),
        variants=tuple(Variant(name, (), 1, 1, None, None) for name in variants),
        answers=answers,
        component=component,
    )


def history(account: Account, endpoint: EndpointStatus, hours: int = 1) -> Any:
    return find_history(cast("Access", account), endpoint, hours)


def test_variants_are_added_up_and_the_slowest_counts() -> None:
    account = Account(
        {
            ("Invocations", "Sum", "A"): {0: 3, 1: 6},
            ("InvocationsPerInstance", "Sum", "A"): {0: 1.5, 1: 2},
            ("Invocations", "Sum", "B"): {1: 1},
            ("Invocation5XXErrors", "Sum", "B"): {1: 1},
            ("ModelLatency", "p50", "A"): {1: 2_000},
            ("ModelLatency", "p50", "B"): {1: 5_000},
            ("ModelLatency", "p99", "A"): {0: 9_000},
        }
    )
    found = history(account, endpoint("A", "B"))
    assert (found.start, found.period_seconds) == (NOW.replace(hour=19, minute=8, second=0), 60)
    assert found.requests == [*[None] * 58, 7, 3]
    assert found.errors[-2:] == [1, None]
    assert found.p50_milliseconds[-2:] == [5, None]
    assert found.p99_milliseconds[-2:] == [None, 9]
    assert found.counted == "instances"
    assert found.sizes["A"][-3:] == [None, 3, 2]
    assert found.sizes["B"] == [None] * 60


@pytest.mark.parametrize(("hours", "period", "count"), [(24, 300, 288), (168, 3600, 168)])
def test_a_longer_time_has_longer_periods(hours: int, period: int, count: int) -> None:
    # Values lie at the beginnings of periods, which are round times.
    minutes = 2 if period == 300 else 7
    points = {minutes: 30.0, minutes + period // 60: 30.0}
    account = Account({("Invocations", "Sum", "A"): points})
    found = history(account, endpoint("A"), hours)
    assert (found.period_seconds, len(found.requests), account.periods) == (period, count, {period})
    # The last period is not over: it has lasted 2.5 or 7.5 minutes.
    assert found.requests[-2:] == [30 * 60 / period, 30 / (minutes + 0.5)]


def test_copies_and_queues_have_their_own_metrics() -> None:
    copies = {
        ("Invocations", "Sum", "ranker"): {1: 6.0},
        ("InvocationsPerCopy", "Sum", "ranker"): {1: 2.0},
    }
    found = history(Account(copies), endpoint("A", copies=True))
    assert (found.counted, found.requests[-2], found.sizes["copies"][-2]) == ("copies", 6, 3)
    queue = {
        ("TimeInBacklog", "SampleCount", "A"): {1: 6.0},
        ("ApproximateBacklogSize", "Average", "ranker"): {1: 8.0, 2: 0.0},
        ("ApproximateBacklogSizePerInstance", "Average", "ranker"): {1: 2.0, 2: 0.0},
    }
    found = history(Account(queue), endpoint("A", answers="s3://answers"))
    assert (found.requests[-2], found.sizes["instances"][-3:]) == (6, [None, 4, None])
    assert [each.title for each in found.plots()] == [
        *("Requests", "Server errors", "Time to answer", "Instances")
    ]


def test_the_requests_of_a_queue_count_and_an_endpoint_that_failed_has_gaps_alone() -> None:
    points = {("TimeInBacklog", "SampleCount", "A"): {1: 6.0, 30: 2.0}}
    watched = [endpoint("A", answers="s3://answers").watched, endpoint("A").watched]
    queued, other = find_traffic(Account(points), watched, NOW)
    assert (queued.request_count, other.request_count) == (8, 0)
    found = history(Account({}), endpoint())
    assert set(found.requests) == set(found.p99_milliseconds) == {None}
    assert len(found.plots()) == 4
