"""The CloudWatch metrics of endpoints: of their invocations, and of the machines behind them.

They are recorded without a call per request: every half second, one thread passes the new values to
CloudWatch. It writes straight to moto's back end, because PutMetricData refuses the namespaces that
AWS keeps for itself.

SageMaker publishes its metrics every minute, or as often as MetricsConfig says. There is therefore
one datum per such period, variant and metric, which grows until the period is over. It holds the
exact count, sum, minimum and maximum. For percentiles it holds how often each value occurred,
rounded to three significant digits. The memory depends on the time and on how far the values
spread, not on the number of requests.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from moto.cloudwatch.models import cloudwatch_backends

from embedded_aws.hosting.published import DEFAULT_SECONDS, PublishedMetrics
from embedded_aws.identity import ACCOUNT_ID
from embedded_aws.monitoring.samples import PeriodOfValues, begin_of

NAMESPACE = "AWS/SageMaker"
MACHINES_NAMESPACE = "/aws/sagemaker/Endpoints"
_INTERVAL_SECONDS = 0.5
_MINUTE_SECONDS = 60
_DEFAULT = PublishedMetrics()
# How long CloudWatch keeps data points of one minute:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#metrics-retention
_RETENTION_SECONDS = 15 * 86_400
# Units: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
_UNITS = {
    "ModelLatency": "Microseconds",
    "OverheadLatency": "Microseconds",
    "CPUUtilization": "Percent",
    "DiskUtilization": "Percent",
    "MemoryUtilization": "Percent",
    # https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html
    "NoCapacityInvocationFailures": "Count",
    "ApproximateAgeOfOldestRequest": "Seconds",
    "ApproximateBacklogSize": "Count",
    "ApproximateBacklogSizePerInstance": "Count",
    "HasBacklogWithoutCapacity": "Count",
    "ExpiredRequests": "Count",
    "InvocationFailures": "Count",
    "InvocationsProcessed": "Count",
    "NotificationFailures": "Count",
    "RequestDownloadFailures": "Count",
    "RequestDownloadLatency": "Microseconds",
    "ResponseUploadFailures": "Count",
    "ResponseUploadLatency": "Microseconds",
    "TimeInBacklog": "Microseconds",
    "TotalProcessingTime": "Milliseconds",
}


@dataclass(frozen=True)
class Invocation:
    """One request that reached a variant.

    Attributes:
        region: the endpoint's region.
        endpoint_name: EndpointName of the metrics.
        variant_name: variant that served it.
        config_name: the endpoint configuration of the fleet that served it.
        instance_count: the variant's instances, or the component's copies.
        status: the container's HTTP status; 0 if it gave no answer.
        model_seconds: time until the container had answered.
        overhead_seconds: the rest of the request's time here.
        component_name: inference component that served it; None for a variant's model.
        source: the instance and the container that served it; None if nobody knows.
        published: which metrics are published, and how often.
    """

    region: str
    endpoint_name: str
    variant_name: str
    config_name: str
    instance_count: int
    status: int
    model_seconds: float
    overhead_seconds: float
    component_name: str | None = None
    source: "Source | None" = None
    published: PublishedMetrics = _DEFAULT

    def values(self) -> dict[str, float]:
        """Returns the metrics' values for this request."""
        share = "InvocationsPerInstance" if self.component_name is None else "InvocationsPerCopy"
        return {
            "Invocations": 1.0,
            share: 1.0 / max(self.instance_count, 1),
            "Invocation4XXErrors": float(400 <= self.status < 500),
            "Invocation5XXErrors": float(500 <= self.status < 600),
            "InvocationModelErrors": float(not 200 <= self.status < 300),
            "ModelLatency": self.model_seconds * 1e6,
            "OverheadLatency": self.overhead_seconds * 1e6,
        }


class Source(NamedTuple):
    """A container on an instance.

    Attributes:
        instance_id: dimension InstanceId.
        container_id: dimension ContainerId, of a copy of an inference component.
    """

    instance_id: str
    container_id: str


class MetricOwner(NamedTuple):
    """The namespace and dimensions of metrics; a tuple, because requests hash it.

    Attributes:
        region: the endpoint's region.
        namespace: the metrics' namespace.
        endpoint_name: dimension EndpointName.
        variant_name: dimension VariantName; empty for a metric of the endpoint.
        config_name: dimension EndpointConfigName; None for a metric without it.
        component_name: dimension InferenceComponentName, which is the only one without a source;
            None for a metric of a variant or an endpoint.
        source: dimension InstanceId, and ContainerId for a component; None for a metric of all
            instances together.
    """

    region: str
    namespace: str
    endpoint_name: str
    variant_name: str
    config_name: str | None = None
    component_name: str | None = None
    source: Source | None = None

    def dimensions(self) -> list[dict[str, str]]:
        """Returns the dimensions, as moto keeps them."""
        if self.component_name is not None and self.source is None:
            return [{"Name": "InferenceComponentName", "Value": self.component_name}]
        found = {"EndpointName": self.endpoint_name}
        if self.variant_name:
            found["VariantName"] = self.variant_name
        if self.config_name is not None:
            found["EndpointConfigName"] = self.config_name
        if self.component_name is not None:
            found["InferenceComponentName"] = self.component_name
        if self.source is not None:
            found["InstanceId"] = self.source.instance_id
            if self.component_name is not None:
                found["ContainerId"] = self.source.container_id
        return [{"Name": name, "Value": value} for name, value in found.items()]


# Owner, metric, beginning of the period, length of the period.
_Key = tuple[MetricOwner, str, int, int]


@dataclass
class _Period:
    """The values of one metric in one period so far.

    Attributes:
        index: position of `datum` in moto's list when it was put there.
    """

    occurrences: Counter[float] = field(default_factory=Counter)
    total: float = 0.0
    low: float = float("inf")
    high: float = float("-inf")
    datum: PeriodOfValues | None = None
    index: int = 0

    def add(self, values: list[float]) -> None:
        self.occurrences.update(float(f"{value:.3g}") for value in values)
        self.total += sum(values)
        self.low = min(self.low, *values)
        self.high = max(self.high, *values)


class MetricPublisher:
    """Collects invocations and publishes them.

    Args:
        clock: returns seconds since the epoch; tests move it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._pending: dict[_Key, list[float]] = {}
        self._lock = threading.Lock()
        self._periods: dict[_Key, _Period] = {}
        self._publishing = threading.Lock()
        self._pruned_minute = 0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metric-publisher", daemon=True)
        self._thread.start()

    def record(self, invocation: Invocation) -> None:
        """Adds one request; it is visible in CloudWatch within a second.

        SageMaker publishes it twice: for the variant, and for the variant in the fleet of one
        endpoint configuration. Enhanced metrics are also there for the instance.
        """
        owner = MetricOwner(
            invocation.region,
            NAMESPACE,
            invocation.endpoint_name,
            invocation.variant_name,
            # A component's metrics are not told apart by the configuration of its endpoint.
            invocation.config_name if invocation.component_name is None else None,
            invocation.component_name,
        )
        values, published = invocation.values(), invocation.published
        self.record_values(owner, values, published.requests_seconds)
        if published.is_enhanced and invocation.source is not None:
            of_instance = owner._replace(config_name=None, source=invocation.source)
            self.record_values(of_instance, values, published.requests_seconds)

    def record_values(
        self,
        owner: MetricOwner,
        values: Mapping[str, float],
        period_seconds: int = DEFAULT_SECONDS,
    ) -> None:
        """Adds one value to each of an owner's metrics.

        Args:
            owner: namespace and dimensions.
            values: by the metrics' names.
            period_seconds: interval at which they are published.
        """
        start_seconds = int(self._clock() // period_seconds) * period_seconds
        with self._lock:
            for name, value in values.items():
                key = (owner, name, start_seconds, period_seconds)
                self._pending.setdefault(key, []).append(value)

    def publish(self) -> None:
        """Passes on the values recorded since the last call."""
        with self._publishing:
            with self._lock:
                pending, self._pending = self._pending, {}
            now_seconds = self._clock()
            for key, values in _of_variant_too(pending).items():
                period = self._periods.setdefault(key, _Period())
                period.add(values)
                _put(key, period, now_seconds)
            self._forget(int(now_seconds // _MINUTE_SECONDS))

    def close(self) -> None:
        """Publishes the rest and stops the thread."""
        self._closed.set()
        self._thread.join()
        self.publish()

    def _run(self) -> None:
        while not self._closed.wait(_INTERVAL_SECONDS):
            self.publish()

    def _forget(self, current: int) -> None:
        """Drops finished periods and data past its retention, once per minute."""
        if current == self._pruned_minute:
            return
        self._pruned_minute = current
        regions = {key[0].region for key in self._periods}
        # Requests of the last minute may still be recorded.
        last_seconds = (current - 1) * _MINUTE_SECONDS
        self._periods = {
            key: period for key, period in self._periods.items() if key[2] + key[3] > last_seconds
        }
        oldest_seconds = current * _MINUTE_SECONDS - _RETENTION_SECONDS
        for region in regions:
            data = cloudwatch_backends[ACCOUNT_ID][region].metric_data
            kept = (i for i, datum in enumerate(data) if begin_of(datum) >= oldest_seconds)
            # One statement, because requests append to the list meanwhile.
            del data[: next(kept, len(data))]


def _of_variant_too(pending: Mapping[_Key, list[float]]) -> dict[_Key, list[float]]:
    """Returns the values of each fleet, and the values of each variant in all its fleets."""
    found: dict[_Key, list[float]] = {}
    for (owner, metric, start_seconds, length_seconds), values in pending.items():
        for each in {owner, owner._replace(config_name=None)}:
            found.setdefault((each, metric, start_seconds, length_seconds), []).extend(values)
    return found


def _put(key: _Key, period: _Period, now_seconds: float) -> None:
    """Puts a period's datum into moto's back end, in place of its earlier version."""
    owner, metric, start_seconds, length_seconds = key
    # The time is now and not the start of the period, because moto does not round times down. A
    # query from within this period on finds the datum, as in CloudWatch.
    last_seconds = start_seconds + length_seconds - 1e-3
    previous = period.datum
    period.datum = PeriodOfValues(
        namespace=owner.namespace,
        name=metric,
        dimensions=owner.dimensions(),
        start_seconds=start_seconds,
        timestamp=_naive_utc(min(now_seconds, last_seconds)),
        unit=_UNITS.get(metric, "None"),
        total=period.total,
        low=period.low,
        high=period.high,
        occurrences=period.occurrences,
    )
    data: list[Any] = cloudwatch_backends[ACCOUNT_ID][owner.region].metric_data
    index = period.index
    if previous is not None and (index >= len(data) or data[index] is not previous):
        index = next((i for i in reversed(range(len(data))) if data[i] is previous), len(data))
    if previous is None or index == len(data):
        index = len(data)
        data.append(period.datum)
    else:
        data[index] = period.datum
    period.index = index


def _naive_utc(seconds: float) -> datetime:
    # moto keeps times without a time zone.
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
