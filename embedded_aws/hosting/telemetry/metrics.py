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

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.samples import PeriodOfValues, begin_of
from slipway.embedded_aws.periodic import Periodic

NAMESPACE = "AWS/SageMaker"
MACHINES_NAMESPACE = "/aws/sagemaker/Endpoints"
_INTERVAL_SECONDS = 0.5
_MINUTE_SECONDS = 60
DEFAULT_SECONDS = 60
_FREQUENCIES = (10, 30, 60, 120, 180, 240, 300)
# How long CloudWatch keeps data points of one minute:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_concepts.html#metrics-retention
_RETENTION_SECONDS = 15 * 86_400
# Units: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
_UNITS = {
    "ModelLatency": "Microseconds",
    "OverheadLatency": "Microseconds",
    "ModelSetupTime": "Microseconds",
    "ConcurrentRequestsPerCopy": "Count",
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
class PublishedMetrics:
    """Which metrics of one endpoint configuration SageMaker publishes, and how often.

    Enhanced metrics are also there for each instance and copy. Sources, read 2026-11-25:
    https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch-enhanced-metrics.html and
    https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-detailed-observability-metric-mapping.html
    """

    is_enhanced: bool = False
    machines_seconds: int = DEFAULT_SECONDS

    @property
    def requests_seconds(self) -> int:
        """Returns the interval of the metrics of requests, which only enhanced metrics change."""
        return self.machines_seconds if self.is_enhanced else DEFAULT_SECONDS

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> "PublishedMetrics":
        """Reads CreateEndpointConfig's request; raises `ValidationError` as SageMaker does."""
        declared = parameters.get("MetricsConfig", {})
        seconds = declared.get("MetricPublishFrequencyInSeconds", DEFAULT_SECONDS)
        if seconds not in _FREQUENCIES:
            # AWS lists the values, and quotes no message.
            raise ValidationError(
                f"MetricPublishFrequencyInSeconds {seconds} is not one of "
                f"{', '.join(map(str, _FREQUENCIES))}."
            )
        is_enhanced = declared.get("EnableEnhancedMetrics", False)
        if is_enhanced and "AsyncInferenceConfig" in parameters:
            raise ValidationError(
                "The embedded AWS does not emulate enhanced metrics of an asynchronous endpoint: "
                "AWS documents them for real-time endpoints only."
            )
        return cls(is_enhanced, seconds)


class Source(NamedTuple):
    """An instance, and the container of a copy of an inference component on it."""

    instance_id: str
    container_id: str


class MetricOwner(NamedTuple):
    """The namespace and dimensions of metrics; a tuple, because requests hash it.

    Attributes:
        variant_name: empty for a metric of the endpoint.
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


@dataclass(frozen=True)
class Invocation:
    """One request that reached a variant or a copy of an inference component.

    Attributes:
        owner: of its metrics; with a source, the metrics of one instance or copy.
        instance_count: the variant's instances, or the component's copies.
        status: the container's HTTP status; 0 if it gave no answer.
        overhead_seconds: the time of the request here without `model_seconds`.
        serverless: further values of a serverless variant; empty for any other.
    """

    owner: MetricOwner
    instance_count: int
    status: int
    model_seconds: float
    overhead_seconds: float
    published: PublishedMetrics = PublishedMetrics()
    serverless: Mapping[str, float] = field(default_factory=dict)

    def values(self) -> dict[str, float]:
        of_component = self.owner.component_name is not None
        share = "InvocationsPerCopy" if of_component else "InvocationsPerInstance"
        found = {
            "Invocations": 1.0,
            share: 1.0 / max(self.instance_count, 1),
            "Invocation4XXErrors": float(400 <= self.status < 500),
            "Invocation5XXErrors": float(500 <= self.status < 600),
            "InvocationModelErrors": float(not 200 <= self.status < 300),
            "ModelLatency": self.model_seconds * 1e6,
            "OverheadLatency": self.overhead_seconds * 1e6,
        }
        if self.serverless:
            # https://docs.aws.amazon.com/sagemaker/latest/dg/serverless-endpoints-monitoring.html
            del found[share], found["InvocationModelErrors"]
        return {**found, **self.serverless}


# Owner, metric, beginning of the period, length of the period.
_Key = tuple[MetricOwner, str, int, int]


@dataclass
class _Period:
    """The values of one metric in one period so far; `index` is where moto's list had `datum`."""

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
    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._pending: dict[_Key, list[float]] = {}
        self._lock = threading.Lock()
        self._periods: dict[_Key, _Period] = {}
        self._publishing = threading.Lock()
        self._pruned_minute = 0
        self._publication = Periodic(self.publish, _INTERVAL_SECONDS, "metric-publisher")

    def record(self, invocation: Invocation) -> None:
        """Adds one request; it is visible in CloudWatch within a second.

        SageMaker publishes it twice: for the variant, and for the variant in the fleet of one
        endpoint configuration. Enhanced metrics are also there for the instance.
        """
        owner, published = invocation.owner, invocation.published
        values, seconds = invocation.values(), published.requests_seconds
        if owner.component_name is not None:
            # A component's metrics are not told apart by the configuration of its endpoint.
            owner = owner._replace(config_name=None)
        self.record_values(owner._replace(source=None), values, seconds)
        if published.is_enhanced and owner.source is not None:
            self.record_values(owner._replace(config_name=None), values, seconds)

    def record_values(
        self,
        owner: MetricOwner,
        values: Mapping[str, float],
        period_seconds: int = DEFAULT_SECONDS,
        at_seconds: float | None = None,
    ) -> None:
        """Adds one value to each of an owner's metrics, now or at an earlier time on the clock."""
        moment_seconds = self._clock() if at_seconds is None else at_seconds
        start_seconds = int(moment_seconds // period_seconds) * period_seconds
        with self._lock:
            for name, value in values.items():
                key = (owner, name, start_seconds, period_seconds)
                self._pending.setdefault(key, []).append(value)

    def publish(self) -> None:
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
        self._publication.close()
        self.publish()

    def _forget(self, current: int) -> None:
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
