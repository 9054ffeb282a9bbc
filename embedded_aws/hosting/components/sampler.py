"""The metrics of inference components between requests, and the release of idle instances.

- ConcurrentRequestsPerCopy has a value for each copy every ten seconds, as AWS's blog describes the
  metric of high resolution:
  https://aws.amazon.com/blogs/machine-learning/amazon-sagemaker-inference-launches-faster-auto-scaling-for-generative-ai-models/
  (read 2026-11-24).
- InvocationsPerCopy has a zero in minutes without requests. AWS does not document this. Its
  walk-through of scaling to zero tracks this metric, and a component without requests loses its
  copies there.
"""

import threading
from collections import Counter
from collections.abc import Callable

from slipway.embedded_aws.hosting.components.component import Component, copies_on
from slipway.embedded_aws.hosting.fleets.endpoint import Endpoint
from slipway.embedded_aws.hosting.fleets.instance_group import InstanceGroup
from slipway.embedded_aws.hosting.fleets.placement import Copy, emptied
from slipway.embedded_aws.hosting.resources.records import Records
from slipway.embedded_aws.hosting.telemetry.metrics import MetricPublisher
from slipway.embedded_aws.periodic import Periodic

CONCURRENT = "ConcurrentRequestsPerCopy"
_RESOLUTION_SECONDS = 10
# Enough for an alarm over fifteen minutes, however far the clock was moved.
_MOST_MARKS = 90
_INTERVAL_SECONDS = 1.0
_SHORTEST_INTERVAL_SECONDS = 0.1


class ComponentSampler:
    def __init__(
        self,
        components: Records[Component],
        endpoints: Records[Endpoint],
        publisher: MetricPublisher,
        clock: Callable[[], float],
        *,
        time_scale: float = 1.0,
    ) -> None:
        self._components = components
        self._endpoints = endpoints
        self._publisher = publisher
        self._clock = clock
        self._mark_seconds = _mark(clock())
        self._lock = threading.Lock()
        interval_seconds = max(_INTERVAL_SECONDS * time_scale, _SHORTEST_INTERVAL_SECONDS)
        self._sampling = Periodic(self.sample, interval_seconds, "component-sampler")

    def sample(self) -> None:
        """Records the values that are due, and lets the instances follow the copies."""
        with self._lock:
            now_seconds = self._clock()
            last = _mark(now_seconds)
            first = max(self._mark_seconds, last - _MOST_MARKS * _RESOLUTION_SECONDS)
            marks = range(first + _RESOLUTION_SECONDS, last + 1, _RESOLUTION_SECONDS)
            self._mark_seconds = last
            for component in self._components.all():
                self._measure(component, marks)
            for endpoint in self._endpoints.all():
                self._follow_copies(endpoint, now_seconds)

    def close(self) -> None:
        self._sampling.close()

    def _measure(self, component: Component, marks: range) -> None:
        with component.lock:
            copies = [*component.copies, *component.pending]
        if not copies:
            return
        self._publisher.record_values(component.owner, {"InvocationsPerCopy": 0.0})
        if not marks:
            return
        for copy in copies:
            # The most requests belong to the first mark. The clock was moved over any later
            # mark, so its value is the number of requests now.
            values = [float(copy.take_most_in_flight())]
            values += [float(copy.in_flight)] * (len(marks) - 1)
            for mark, value in zip(marks, values, strict=True):
                # The interval before the mark: an alarm's period that ends at the mark has it.
                self._publisher.record_values(
                    component.owner,
                    {CONCURRENT: value},
                    _RESOLUTION_SECONDS,
                    mark - _RESOLUTION_SECONDS,
                )

    def _follow_copies(self, endpoint: Endpoint, now_seconds: float) -> None:
        with endpoint.lock:
            groups = [] if endpoint.live is None else list(endpoint.live.groups.values())
        for group in groups:
            self._consolidate(endpoint, group, now_seconds)
            copies = copies_on(self._components.all(), endpoint, group.name)
            occupied = {copy.machine for copy in copies if copy.machine is not None}
            with endpoint.lock:
                group.follow(len(occupied), now_seconds)
                group.machines(occupied)

    def _consolidate(self, endpoint: Endpoint, group: InstanceGroup, now_seconds: float) -> None:
        found = [
            each
            for each in self._components.all()
            if each.endpoint is endpoint and each.variant_name == group.name
        ]
        changing = any(each.progress is not None for each in found)
        counts = Counter({each.name: len(each.copies) for each in found})
        if not group.is_due(counts, now_seconds) or changing:
            return
        running = [(each, copy) for each in found for copy in each.copies]
        copies = [Copy(each.name, each.copy_size, copy.machine) for each, copy in running]
        scheduling = {each.name: each.specification.get("SchedulingConfig", {}) for each in found}
        for _ in range(group.most_consolidated):
            moved = emptied(group.instance_size, copies, scheduling)
            if moved is None:
                return
            for (_, copy), at in zip(running, moved, strict=True):
                if at.machine is not None and at.machine is not copy.machine:
                    copy.move(at.machine)
            copies = moved
            group.instance_count = max(group.instance_count - 1, group.lowest_count)


def _mark(seconds: float) -> int:
    return int(seconds) // _RESOLUTION_SECONDS * _RESOLUTION_SECONDS
