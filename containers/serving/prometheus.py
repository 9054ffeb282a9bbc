"""Metrics in Prometheus' text format, version 0.0.4, and the application that serves them.

(https://prometheus.io/docs/instrumenting/exposition_formats/)
Imported only by a server that has a metrics port.
"""

from collections.abc import Callable
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from containers.serving.metrics import Metrics, Record

METRICS_PATH: Final = "/metrics"


class PrometheusMetrics(Metrics):
    """Keeps metrics in its own registry, together with the process's memory and CPU time."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)

    def counter(self, name: str, description: str) -> Record:
        return Counter(name, description, registry=self._registry).inc

    def labelled_counter(
        self, name: str, description: str, labels: tuple[str, ...]
    ) -> Callable[..., None]:
        counter = Counter(name, description, labels, registry=self._registry)
        # Looking up a child by its labels costs several times as much as adding to it.
        children: dict[tuple[object, ...], Counter] = {}

        def add(*values: object) -> None:
            child = children.get(values)
            if child is None:
                child = children[values] = counter.labels(*values)
            child.inc()

        return add

    def histogram(self, name: str, description: str, buckets: tuple[float, ...]) -> Record:
        return Histogram(name, description, buckets=buckets, registry=self._registry).observe

    def gauge(self, name: str, description: str, read: Callable[[], float]) -> None:
        Gauge(name, description, registry=self._registry).set_function(read)

    def text(self) -> bytes:
        return generate_latest(self._registry)


def create_metrics_app(metrics: Metrics) -> Starlette:
    # async, so that it runs on the event loop: the gauges read values that only the loop changes.
    async def answer(_request: Request) -> Response:
        return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE_PLAIN_0_0_4})

    return Starlette(routes=[Route(METRICS_PATH, answer, methods=["GET"])])
