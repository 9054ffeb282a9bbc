"""How long requests wait in a slot: Erlang's C, a tide that the fleet cannot take, and bounds.

Two parts add up. Chance makes requests wait although the fleet is fast enough: the wait of the
M/M/c queue, corrected for other service times by Allen and Cunneen's factor (1 + cv^2) / 2. What
arrives beyond the capacity is a backlog that grows and drains like water. Near the capacity the
queue needs longer than a slot to get to its steady length. It grows like the reflected random walk:
its square by 2 / pi of the variance of arrivals and departures.

The first part is exact for the M/M/c queue in its steady state.
"""

import functools
import math
from dataclasses import dataclass
from typing import Final

_FULLEST: Final = 0.9999


@dataclass(frozen=True)
class ServiceTimes:
    """How long an instance computes: what a measurement or a prediction has to tell.

    Args:
        mean_seconds: of one request, with `concurrency` of them on the instance.
        variation: standard deviation divided by the mean: 0 for a constant, 1 for exponential.
        concurrency: requests that one instance computes at once.
    """

    mean_seconds: float
    variation: float
    concurrency: int

    @property
    def per_second(self) -> float:
        return self.concurrency / self.mean_seconds


@dataclass(frozen=True)
class Bounds:
    """What ends a request without an answer; None is no bound.

    A queue is that of one instance, and the longest time includes computing. With `is_pooled`, any
    free instance takes the next request; otherwise each gets its share at random. With `keeps`,
    requests wait while there is no instance.
    """

    queue_length: int | None = None
    seconds: float | None = None
    is_pooled: bool = True
    keeps: bool = False


@dataclass(frozen=True)
class Slot:
    """A slot of time.

    `answered` requests are taken in. Others are refused by a full queue or for want of an instance,
    or time out while the backlog is longer than the limit. `backlog` are those that wait at the
    end, beyond those of chance. Chance makes the share `waiting` wait for `wait_seconds` in the
    mean, exponentially distributed. `capacity` is a second's.
    """

    answered: float
    refused: float
    timed_out: float
    backlog: float
    capacity: float
    waiting: float
    wait_seconds: float
    in_flight: float


class Queue:
    def __init__(self, service: ServiceTimes, bounds: Bounds) -> None:
        self._service = service
        self._bounds = bounds
        self._backlog = 0.0
        self._random_length = 0.0

    def step(self, requests: float, instances: int, seconds: float) -> Slot:
        """Returns what happens in a slot with so many instances in service."""
        if not instances:
            return self._without_instances(requests)
        service, bounds = self._service, self._bounds
        capacity = instances * service.per_second
        queues = 1 if bounds.is_pooled else instances
        servers = instances * service.concurrency // queues
        rate = requests / seconds
        before, after = self._backlog, max(0.0, self._backlog + requests - capacity * seconds)
        # While there is a backlog no instance is idle, and chance adds as much as it takes away.
        growing = 0.0 if after else seconds
        waiting, length = self._by_chance(rate / queues, servers, growing)
        wait = length * queues / rate / waiting if rate and waiting else 0.0
        refused = timed_out = 0.0
        room = math.inf if bounds.queue_length is None else float(bounds.queue_length * instances)
        patience = math.inf
        if bounds.seconds is not None:
            patience = capacity * max(0.0, bounds.seconds - service.mean_seconds)
        if after > min(room, patience):
            lost = min(after - min(room, patience), requests)
            refused, timed_out = (lost, 0.0) if room <= patience else (0.0, lost)
            after = min(room, patience)
            # The bound holds for both parts together.
            self._random_length = 0.0
        elif room < math.inf and wait:
            # The chance that the queue is full, by the tail of the wait.
            spare = max(0.0, room / queues - before / queues)
            full = waiting * math.exp(-spare / (wait * capacity / queues))
            refused = requests * min(1.0, full * max(0.0, 1 - rate / capacity))
        self._backlog = after
        return Slot(
            requests - refused - timed_out,
            refused,
            timed_out,
            after,
            capacity,
            waiting,
            wait,
            (before + after) / 2 + length * queues + min(rate, capacity) * service.mean_seconds,
        )

    def _by_chance(self, rate: float, servers: int, seconds: float) -> tuple[float, float]:
        """Returns the share that waits in one queue, and the mean number of those."""
        load = min(rate * self._service.mean_seconds / servers, _FULLEST)
        waiting = erlang_c(load, servers)
        spread = (1 + self._service.variation**2) / 2
        steady = waiting * load / (1 - load) * spread
        grown = math.hypot(self._random_length, math.sqrt(4 * rate * spread * seconds / math.pi))
        self._random_length = min(steady, grown)
        return waiting, self._random_length

    def _without_instances(self, requests: float) -> Slot:
        if not self._bounds.keeps:
            self._backlog = 0.0
            return Slot(0.0, requests, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
        before, self._backlog = self._backlog, self._backlog + requests
        in_flight = before + requests / 2
        return Slot(requests, 0.0, 0.0, self._backlog, 0.0, 0.0, 0.0, in_flight)


@functools.lru_cache(maxsize=65_536)  # runs of a search have many slots in common
def erlang_c(load: float, servers: int) -> float:
    """Returns the share of requests that wait for one of so many servers.

    Each has a load from 0 to below 1.
    """
    offered, blocked = load * servers, 1.0
    for busy in range(1, servers + 1):
        blocked = offered * blocked / (busy + offered * blocked)
    return blocked / (1 - load * (1 - blocked))
