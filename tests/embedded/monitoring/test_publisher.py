"""The metrics of invocations, as they reach CloudWatch's back end."""

import gc
import pickle
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.hosting.telemetry.metrics import (
    NAMESPACE,
    Invocation,
    MetricOwner,
    MetricPublisher,
    PublishedMetrics,
    Source,
)
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.samples import PeriodOfValues, Samples

REGION = "sa-east-1"
SEVEN = datetime(2026, 11, 21, 7, tzinfo=UTC).timestamp()
METRICS = 7
NOT_ENHANCED = PublishedMetrics()


class Bench:
    """A publisher whose clock a test moves, and what it put into moto's back end."""

    def __init__(self) -> None:
        self.now = SEVEN + 10
        self.publisher = MetricPublisher(clock=lambda: self.now)

    @property
    def backend(self) -> Any:
        return cloudwatch_backends[ACCOUNT_ID][REGION]

    def record(
        self,
        model_seconds: float = 0.25,
        status: int = 200,
        published: PublishedMetrics = NOT_ENHANCED,
        **of: Any,
    ) -> None:
        owner = MetricOwner(REGION, NAMESPACE, "e", "v", **{"config_name": "c", **of})
        self.publisher.record(Invocation(owner, 2, status, model_seconds, 0.001, published))

    def data(self, metric: str, config: str | None = None) -> list[Any]:
        """The data of a metric: of the variant, or of the variant in one configuration's fleet."""
        return [
            datum
            for datum in self.backend.metric_data
            if datum.name == metric and config == dimensions(datum).get("EndpointConfigName")
        ]


def dimensions(datum: Any) -> dict[str, str]:
    return {dimension.name: dimension.value for dimension in datum.dimensions}


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.publisher.close()
    bench.backend.reset()


def test_a_minute_is_one_datum_that_grows(bench):
    for second in range(10, 60, 10):
        bench.now = SEVEN + second
        bench.record(second / 100, status=500 if second == 30 else 200)
        bench.publisher.publish()
    # Each metric is there for the variant and for its fleet.
    assert len(bench.backend.metric_data) == 2 * METRICS
    (latency,) = bench.data("ModelLatency")
    assert (latency.sample_count, latency.min, latency.max) == (5.0, 100_000.0, 500_000.0)
    assert latency.sum == pytest.approx(1_500_000)
    assert list(latency.values) == [100_000, 200_000, 300_000, 400_000, 500_000]
    assert latency.unit == "Microseconds"
    assert dimensions(latency) == {"EndpointName": "e", "VariantName": "v"}
    assert latency.timestamp == datetime(2026, 11, 21, 7, 0, 50)
    (errors,) = bench.data("Invocation5XXErrors")
    assert (list(errors.values), list(errors.counts), errors.sum) == ([0.0, 1.0], [4, 1], 1.0)
    (share,) = bench.data("InvocationsPerInstance")
    assert share.sum == 2.5


def test_each_fleet_has_its_own_datum_beside_the_variants(bench):
    for config, status in (("old", 200), ("new", 500), ("old", 200), ("old", 200)):
        bench.record(status=status, config_name=config)
    bench.publisher.publish()
    (errors,) = bench.data("Invocation5XXErrors")
    assert (errors.sample_count, errors.sum) == (4.0, 1.0)
    for config, sums in (("old", (3.0, 0.0)), ("new", (1.0, 1.0))):
        (of_fleet,) = bench.data("Invocation5XXErrors", config)
        assert (of_fleet.sample_count, of_fleet.sum) == sums
        assert dimensions(of_fleet) == {
            "EndpointName": "e", "VariantName": "v", "EndpointConfigName": config,
        }  # fmt: skip


def test_enhanced_metrics_are_also_there_for_each_instance(bench):
    published = PublishedMetrics(is_enhanced=True, machines_seconds=10)
    for second, instance in ((1, "i-a"), (2, "i-b"), (9, "i-a"), (11, "i-a")):
        bench.now = SEVEN + second
        bench.record(published=published, source=Source(instance, "0a"))
        bench.publisher.publish()
    found = {
        (frozenset(dimensions(datum).items()), datum.start_seconds - SEVEN): datum.sum
        for datum in bench.backend.metric_data
        if datum.name == "Invocations"
    }
    variant = {"EndpointName": "e", "VariantName": "v"}
    expected = [
        (variant, 0, 3.0),
        (variant, 10, 1.0),
        (variant | {"EndpointConfigName": "c"}, 0, 3.0),
        (variant | {"EndpointConfigName": "c"}, 10, 1.0),
        (variant | {"InstanceId": "i-a"}, 0, 2.0),
        (variant | {"InstanceId": "i-a"}, 10, 1.0),
        (variant | {"InstanceId": "i-b"}, 0, 1.0),
    ]
    assert found == {(frozenset(names.items()), second): total for names, second, total in expected}


def test_a_copys_metrics_name_its_container_too(bench):
    enhanced = PublishedMetrics(is_enhanced=True)
    bench.record(published=enhanced, component_name="component", source=Source("i-a", "0a"))
    bench.publisher.publish()
    of_component, of_copy = sorted(
        (dimensions(datum) for datum in bench.backend.metric_data if datum.name == "Invocations"),
        key=len,
    )
    assert of_component == {"InferenceComponentName": "component"}
    assert of_copy == {
        "EndpointName": "e", "VariantName": "v", "InferenceComponentName": "component",
        "InstanceId": "i-a", "ContainerId": "0a",
    }  # fmt: skip


def test_what_was_recorded_before_the_period_ended_belongs_to_it(bench):
    bench.now = SEVEN + 59.9
    bench.record()
    bench.publisher.publish()
    bench.record()
    bench.now = SEVEN + 60.1
    bench.record()
    bench.publisher.publish()
    first, second = bench.data("Invocations")
    assert (first.sum, second.sum) == (2.0, 1.0)
    assert first.start_seconds == SEVEN
    assert first.timestamp < datetime(2026, 11, 21, 7, 1)
    assert second.start_seconds == SEVEN + 60
    # A period may be longer than a minute.
    published = PublishedMetrics(is_enhanced=True, machines_seconds=300)
    for second_of_period in (310, 430, 590, 610):
        bench.now = SEVEN + second_of_period
        bench.record(published=published, component_name="component")
        bench.publisher.publish()
    long = [each for each in bench.data("Invocations") if len(each.dimensions) == 1]
    assert [(each.start_seconds - SEVEN, each.sum) for each in long] == [(300, 3.0), (600, 1.0)]


def test_users_data_around_it_stays(bench):
    def put(value: float) -> None:
        now = datetime.fromtimestamp(bench.now, UTC).replace(tzinfo=None)
        datum = {"MetricName": "m", "Value": value, "Timestamp": now}
        bench.backend.put_metric_data("n", [datum])

    for number in range(3):
        put(number)
        bench.record()
        bench.publisher.publish()
    # Somebody else's list got shorter: nothing is where it was.
    del bench.backend.metric_data[0]
    bench.record()
    bench.publisher.publish()
    assert [datum.value for datum in bench.data("m")] == [1.0, 2.0]
    (invocations,) = bench.data("Invocations")
    assert invocations.sum == 4.0


def test_values_are_rounded_and_their_statistics_are_not(bench):
    for microsecond in range(1000):
        bench.record((123_000 + microsecond) / 1e6)
    bench.publisher.publish()
    (latency,) = bench.data("ModelLatency")
    assert list(latency.values) == [123_000.0, 124_000.0]
    assert sum(latency.counts) == 1000
    assert (latency.min, latency.max) == pytest.approx((123_000, 123_999))
    assert latency.sum == pytest.approx(sum(range(123_000, 124_000)))
    samples = Samples()
    samples.add(latency)
    # The 99th percentile is 123,989; rounded, it is off by less than half a percent.
    assert samples.statistic("p99") == pytest.approx(123_989, rel=0.005)


def test_data_is_dropped_after_its_retention(bench):
    bench.record()
    bench.publisher.publish()
    bench.now += 15 * 86_400 - 60
    bench.record()
    bench.publisher.publish()
    assert len(bench.data("Invocations")) == 2
    bench.now += 120
    bench.record()
    bench.publisher.publish()
    assert [datum.start_seconds - SEVEN for datum in bench.data("Invocations")] == [
        15 * 86_400 - 60, 15 * 86_400 + 60,
    ]  # fmt: skip


@pytest.mark.size("all")
def test_ten_minutes_of_load_fit_into_a_megabyte(bench):
    # Held, so that no later one takes an earlier one's id: another test's may still be there.
    earlier = periods_in_memory()
    bench.now = SEVEN
    # Spread far: from under 20 ms to over 3 s.
    latencies = random.Random(1)  # noqa: S311
    requests_per_half_second = 250
    for _ in range(2 * 600):
        for _ in range(requests_per_half_second):
            bench.record(latencies.lognormvariate(-1.5, 0.8))
        bench.now += 0.4999
        bench.publisher.publish()
    assert sum(datum.sample_count for datum in bench.data("Invocations")) == 300_000
    data = bench.backend.metric_data
    assert len(data) == 10 * 2 * METRICS
    assert len(pickle.dumps(data)) < 1_000_000
    # Nothing else holds on to what was replaced, as moto does with the objects of its own classes.
    gc.collect()
    known = {id(minute) for minute in earlier}
    alive = [minute for minute in periods_in_memory() if id(minute) not in known]
    assert len(alive) == len(data)


def periods_in_memory() -> list[PeriodOfValues]:
    return [thing for thing in gc.get_objects() if type(thing) is PeriodOfValues]
