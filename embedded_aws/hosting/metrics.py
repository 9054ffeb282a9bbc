"""The CloudWatch metrics of an endpoint's invocations.

Recorded without a call per request: one thread hands CloudWatch a statistic set per variant and
metric every half second. They go straight to moto's back end, because PutMetricData refuses the
namespaces that AWS keeps for itself.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moto.cloudwatch.models import cloudwatch_backends
from moto.core.utils import utcnow

from embedded_aws.identity import ACCOUNT_ID

NAMESPACE = "AWS/SageMaker"
_INTERVAL_SECONDS = 0.5
# Units: https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html
_UNITS = {"ModelLatency": "Microseconds", "OverheadLatency": "Microseconds"}


@dataclass(frozen=True)
class Invocation:
    """One request that reached a variant.

    Attributes:
        region: the endpoint's region.
        endpoint_name: endpoint.
        variant_name: variant that served it.
        instance_count: the variant's instances.
        status: the container's HTTP status; 0 where it gave no answer.
        model_seconds: until the container had answered.
        overhead_seconds: the rest of the request's time here.
    """

    region: str
    endpoint_name: str
    variant_name: str
    instance_count: int
    status: int
    model_seconds: float
    overhead_seconds: float

    def values(self) -> dict[str, float]:
        """The metrics' values for this one request."""
        return {
            "Invocations": 1.0,
            "InvocationsPerInstance": 1.0 / max(self.instance_count, 1),
            "Invocation4XXErrors": float(400 <= self.status < 500),
            "Invocation5XXErrors": float(500 <= self.status < 600),
            "InvocationModelErrors": float(not 200 <= self.status < 300),
            "ModelLatency": self.model_seconds * 1e6,
            "OverheadLatency": self.overhead_seconds * 1e6,
        }


class _StatisticSet:
    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0
        self.low = float("inf")
        self.high = float("-inf")

    def add(self, value: float) -> None:
        self.count += 1
        self.total += value
        self.low = min(self.low, value)
        self.high = max(self.high, value)


_Key = tuple[str, str, str, str]  # region, endpoint, variant, metric


class MetricPublisher:
    """Collects invocations and publishes them."""

    def __init__(self, put: Callable[[str, list[dict[str, Any]]], None] | None = None) -> None:
        self._put = put or _put_to_moto
        self._sets: dict[_Key, _StatisticSet] = {}
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metric-publisher", daemon=True)
        self._thread.start()

    def record(self, invocation: Invocation) -> None:
        """Adds one request; it is visible in CloudWatch within a second."""
        owner = (invocation.region, invocation.endpoint_name, invocation.variant_name)
        with self._lock:
            for name, value in invocation.values().items():
                self._sets.setdefault((*owner, name), _StatisticSet()).add(value)

    def publish(self) -> None:
        """Hands over what was recorded since the last time."""
        with self._lock:
            sets, self._sets = self._sets, {}
        now = utcnow()
        data: dict[str, list[dict[str, Any]]] = {}
        for (region, endpoint_name, variant_name, metric), values in sets.items():
            datum = {
                "MetricName": metric,
                "Dimensions": [
                    {"Name": "EndpointName", "Value": endpoint_name},
                    {"Name": "VariantName", "Value": variant_name},
                ],
                "Timestamp": now,
                "Unit": _UNITS.get(metric, "None"),
                "StatisticValues": {
                    "SampleCount": values.count,
                    "Sum": values.total,
                    "Minimum": values.low,
                    "Maximum": values.high,
                },
            }
            data.setdefault(region, []).append(datum)
        for region, metric_data in data.items():
            self._put(region, metric_data)

    def close(self) -> None:
        """Publishes the rest and stops the thread."""
        self._closed.set()
        self._thread.join()
        self.publish()

    def _run(self) -> None:
        while not self._closed.wait(_INTERVAL_SECONDS):
            self.publish()


def _put_to_moto(region: str, metric_data: list[dict[str, Any]]) -> None:
    cloudwatch_backends[ACCOUNT_ID][region].put_metric_data(NAMESPACE, metric_data)
