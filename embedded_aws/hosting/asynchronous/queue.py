"""The queue of an asynchronous endpoint: what waits, what is computed, and by how many workers."""

import logging
import threading
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.hosting.asynchronous.processing import Processing, ProcessingAgain
from slipway.embedded_aws.hosting.asynchronous.requests import AsyncRequest
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.running_variant import RunningVariant
from slipway.embedded_aws.hosting.telemetry.metrics import NAMESPACE, MetricOwner, MetricPublisher
from slipway.embedded_aws.periodic import Periodic

logger = logging.getLogger(__name__)

# How soon the queue notices that a container is healthy again, or that the clock was moved.
_POLL_SECONDS = 0.05
_INTERVAL_SECONDS = 10.0
_SHORTEST_INTERVAL_SECONDS = 0.1


@dataclass(eq=False)
class AsyncQueues:
    _clients: LoopbackClients
    _metrics: MetricPublisher
    _clock: Callable[[], float]
    _time_scale: float
    _queues: dict[str, "AsyncQueue"] = field(default_factory=dict)

    def __post_init__(self) -> None:
        interval_seconds = max(_INTERVAL_SECONDS * self._time_scale, _SHORTEST_INTERVAL_SECONDS)
        self._sampling = Periodic(self.sample, interval_seconds, "backlog-sampler")

    def open(self, endpoint: Endpoint) -> None:
        processing = Processing(
            endpoint, self._clients, self._metrics, self._clock, self._time_scale
        )
        self._queues[endpoint.arn] = AsyncQueue(processing)

    def put(self, endpoint: Endpoint, request: AsyncRequest) -> None:
        """Adds a request at the end of an endpoint's queue, unless that was dropped meanwhile."""
        queue = self._queues.get(endpoint.arn)
        if queue is not None:
            queue.put(request)

    def sample(self) -> None:
        for queue in list(self._queues.values()):
            queue.sample()

    def drop(self, endpoint: Endpoint) -> None:
        """Drops the queue of an endpoint, with its requests; does nothing without one."""
        queue = self._queues.pop(endpoint.arn, None)
        if queue is not None:
            queue.close()

    def close(self) -> None:
        self._sampling.close()


class AsyncQueue:
    """The requests of one endpoint, oldest first."""

    def __init__(self, processing: Processing) -> None:
        self._processing = processing
        self._endpoint = processing.endpoint
        self._clock = processing.clock
        self._waiting: deque[AsyncRequest] = deque()
        self._computed: list[AsyncRequest] = []
        # Variants whose container broke a connection, until it is known whether it ended.
        self._doubted: set[RunningVariant] = set()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="async-queue", daemon=True)
        self._thread.start()

    def put(self, request: AsyncRequest) -> None:
        with self._changed:
            self._waiting.append(request)
            self._changed.notify_all()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def sample(self) -> None:
        with self._changed:
            requests = [*self._waiting, *self._computed]
        size = len(requests)
        with self._endpoint.lock:
            live = self._endpoint.live
            instances = live.instance_count if live is not None else 0
        values = {
            "ApproximateBacklogSize": float(size),
            # AWS divides by the number of instances. Without any, its guide has target tracking
            # wake an endpoint as soon as the backlog is above the target.
            "ApproximateBacklogSizePerInstance": size / max(instances, 1),
            "HasBacklogWithoutCapacity": float(size > 0 and instances == 0),
        }
        if requests:
            oldest = min(request.received_seconds for request in requests)
            values["ApproximateAgeOfOldestRequest"] = max(self._clock() - oldest, 0.0)
        owner = MetricOwner(self._endpoint.region, NAMESPACE, self._endpoint.name, "")
        self._processing.metrics.record_values(owner, values)

    def _run(self) -> None:
        while True:
            with self._changed:
                if self._closed:
                    return
                self._expire()
                variant = self._free_variant() if self._waiting else None
                if variant is None:
                    self._changed.wait(_POLL_SECONDS)
                    continue
                request = self._waiting.popleft()
                self._computed.append(request)
            threading.Thread(
                target=self._compute, args=(request, variant), name="async-worker", daemon=True
            ).start()

    def _free_variant(self) -> RunningVariant | None:
        """Returns a variant with a free worker, which the request has entered; None without one."""
        entered = self._endpoint.enter(None)
        if entered is None:
            return None
        variant = entered.variant
        settings = self._endpoint.async_settings
        workers = settings.concurrency * variant.instance_count if settings is not None else 0
        is_ready = variant.is_healthy and variant not in self._doubted
        if is_ready and len(self._computed) < workers:
            return variant
        variant.leave()
        return None

    def _compute(self, request: AsyncRequest, variant: RunningVariant) -> None:
        again = False
        try:
            self._processing.process(request, variant)
        except ProcessingAgain:
            again = True
        except Exception:
            # A bug of Slipway; the other requests go on.
            logger.error("%s failed:\n%s", request.request_id, traceback.format_exc())
        finally:
            variant.leave()
            with self._changed:
                self._computed.remove(request)
                if again and not self._closed:
                    self._waiting.appendleft(request)
                    self._doubted.add(variant)
                self._changed.notify_all()
        if again:
            self._await_end_or_answer(variant)

    def _await_end_or_answer(self, variant: RunningVariant) -> None:
        """Waits until a container answers, or has ended: later than its connections broke."""
        while variant.is_healthy and not variant.connections.is_healthy():
            with self._changed:
                if self._closed:
                    return
                self._changed.wait(_POLL_SECONDS)
        with self._changed:
            self._doubted.discard(variant)
            self._changed.notify_all()

    def _expire(self) -> None:
        now = self._clock()
        expired = [r for r in self._waiting if now - r.received_seconds > r.ttl_seconds]
        for request in expired:
            self._waiting.remove(request)
            # In a thread of its own, because the queue is locked here.
            threading.Thread(
                target=self._processing.expire, args=(request,), name="async-expiry", daemon=True
            ).start()
