"""One simulation: the queue, the fleet and the cost over a traffic.

The times of requests are drawn for each slot from its distributions, by the same random numbers in
every run.
"""

import bisect
import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from slipway.planning.cost import HOURS_PER_MONTH
from slipway.simulation.fleet_of import SimulatedFleet
from slipway.simulation.queues import Queue, ServiceTimes, Slot
from slipway.simulation.scaling import Fleet
from slipway.simulation.traffic import SLOT_SECONDS, Traffic

_POINTS: Final = 300_000
_MOST_POINTS: Final = 4096
_SERVICE_POINTS: Final = 50_000
_BINS: Final = 288


_Row = list[tuple[float, float]]
"""Times of requests of a slot, and how many each stands for."""


@dataclass(frozen=True)
class Course:
    """Values over time, in periods of one length; instances are the mean that is paid for.

    `p99_seconds` is of the requests that are answered; None without any.
    """

    period_seconds: int
    instances: tuple[float, ...]
    p99_seconds: tuple[float | None, ...]
    per_second: tuple[float, ...]


@dataclass(frozen=True)
class Simulation:
    """What a fleet does under a traffic.

    Requests are refused by full queues, or for want of an instance. Waits and percentiles are of
    those that are answered. Costs are on demand, for the length of the traffic, and for 730 hours
    of it; None where the price is unknown.
    """

    requests: float
    refused: float
    timed_out: float
    mean_wait_seconds: float
    p50_seconds: float | None
    p99_seconds: float | None
    fewest_instances: int
    most_instances: int
    instance_hours: float
    usd: float | None
    usd_per_month: float | None
    course: Course

    @property
    def failed(self) -> float:
        return (self.refused + self.timed_out) / self.requests if self.requests else 0.0


@dataclass(frozen=True)
class Goal:
    """What settings have to hold: a p99, a share of failed requests, and fewer instance hours."""

    p99_seconds: float
    failed: float
    instance_hours: float


def simulate(
    subject: SimulatedFleet,
    service: ServiceTimes,
    traffic: Traffic,
    *,
    start_seconds: float,
    begin: float = 0.0,
    points: int = _POINTS,
) -> Simulation:
    """Runs a traffic against a fleet.

    From a decision to scale it takes `start_seconds` until the new instance serves. The traffic
    begins at `begin`, in seconds since the epoch. `points` times of requests are drawn in all.
    """
    slots, paid = zip(*_played(subject, service, traffic, start_seconds, begin), strict=True)
    behind = _behind(slots)
    drawn = [*_drawn(service, slots, behind, points)]
    return _summed(subject, traffic, slots, paid, behind, drawn)


def hold(
    subject: SimulatedFleet,
    service: ServiceTimes,
    traffic: Traffic,
    goal: Goal,
    *,
    start_seconds: float,
    begin: float,
    points: int,
) -> Simulation | None:
    """Returns what `simulate` does; None as soon as it is certain that the goal is missed."""
    slots: list[Slot] = []
    paid: list[int] = []
    spent, failed = 0, 0.0
    most_failed = goal.failed * sum(traffic.requests)
    for slot, count in _played(subject, service, traffic, start_seconds, begin):
        slots.append(slot)
        paid.append(count)
        spent += count
        failed += slot.refused + slot.timed_out
        if failed > most_failed or _hours(spent) >= goal.instance_hours:
            return None
    behind = _behind(slots)
    limit = subject.bounds.seconds or math.inf
    most_slow = 0.01 * sum(slot.answered for slot in slots)
    drawn, slow = [], 0.0
    for row in _drawn(service, slots, behind, points):
        drawn.append(row)
        slow += sum(weight for seconds, weight in row if goal.p99_seconds < seconds <= limit)
        if slow > most_slow:
            return None
    found = _summed(subject, traffic, slots, paid, behind, drawn)
    is_held = found.p99_seconds is not None and found.p99_seconds <= goal.p99_seconds
    return found if is_held and found.failed <= goal.failed else None


def _played(
    subject: SimulatedFleet,
    service: ServiceTimes,
    traffic: Traffic,
    start_seconds: float,
    begin: float,
) -> Iterator[tuple[Slot, int]]:
    """Yields what happens in each slot, and the instances that are paid for."""
    queue = Queue(service, subject.bounds)
    fleet = Fleet(subject.scaling, subject.count, start_seconds, begin)
    for index, requests in enumerate(traffic.requests):
        fleet.begin_slot(float(index * SLOT_SECONDS))
        slot = queue.step(requests, fleet.serving, SLOT_SECONDS)
        yield slot, math.ceil(fleet.wanted / subject.per_instance)
        ended = float((index + 1) * SLOT_SECONDS)
        fleet.end_slot(ended, requests, slot.in_flight, 0.0 if fleet.serving else slot.refused)


def _hours(spent: int) -> float:
    return spent * SLOT_SECONDS / 3600


def _summed(
    subject: SimulatedFleet,
    traffic: Traffic,
    slots: Sequence[Slot],
    paid: Sequence[int],
    behind: Sequence[tuple[float, float]],
    drawn: Sequence[_Row],
) -> Simulation:
    limit = math.inf if subject.bounds.seconds is None else subject.bounds.seconds
    in_time = [[each for each in row if each[0] <= limit] for row in drawn]
    answered = sum(slot.answered for slot in slots)
    late = answered - sum(weight for row in in_time for _, weight in row)
    waits = sum(
        slot.answered * (slot.waiting * slot.wait_seconds + (first + last) / 2)
        for slot, (first, last) in zip(slots, behind, strict=True)
    )
    hours = _hours(sum(paid))
    usd = None if subject.usd_per_hour is None else hours * subject.usd_per_hour
    p50, p99 = _percentiles(in_time, (0.5, 0.99))
    return Simulation(
        sum(traffic.requests),
        sum(slot.refused for slot in slots),
        # What the sums of floats leave is no request.
        sum(slot.timed_out for slot in slots) + (late if late > 1e-6 * answered else 0.0),
        waits / answered if answered else 0.0,
        p50,
        p99,
        min(paid),
        max(paid),
        hours,
        None if usd is None else round(usd, 2),
        None if usd is None else round(usd / traffic.seconds * 3600 * HOURS_PER_MONTH, 2),
        _course(traffic, paid, in_time),
    )


def _behind(slots: Sequence[Slot]) -> list[tuple[float, float]]:
    """Returns the wait behind the backlog, at the begin and the end of each slot.

    Requests leave in the order in which they came.
    """
    came = [0.0, *itertools.accumulate(slot.answered for slot in slots)]
    waiting = [0.0, *(slot.backlog for slot in slots)]
    left = [*itertools.accumulate((c - w for c, w in zip(came, waiting, strict=True)), max)]
    last_capacity = slots[-1].capacity

    def leaves(requests: float) -> float:
        """Returns when so many requests have left."""
        place = bisect.bisect_left(left, requests)
        if place == len(left):
            # A backlog at the very end goes on draining.
            more = (requests - left[-1]) / last_capacity if last_capacity else 0.0
            return len(slots) * SLOT_SECONDS + more
        if not place:
            return 0.0
        share = (requests - left[place - 1]) / (left[place] - left[place - 1])
        return (place - 1 + share) * SLOT_SECONDS

    found = []
    for index in range(len(slots)):
        begin, end = index * SLOT_SECONDS, (index + 1) * SLOT_SECONDS
        first = last = 0.0
        if waiting[index] > 0 or waiting[index + 1] > 0:
            # The first request of the slot, and not the one before it.
            first = max(0.0, leaves(came[index] + 0.01) - begin)
        if waiting[index + 1] > 0:
            last = max(0.0, leaves(came[index + 1]) - end)
        found.append((first, last))
    return found


def _drawn(
    service: ServiceTimes,
    slots: Sequence[Slot],
    behind: Sequence[tuple[float, float]],
    points: int,
) -> Iterator[_Row]:
    count = min(max(points // len(slots), 16), _MOST_POINTS)
    computes = _service_seconds(service)
    draw = random.Random(1).random  # noqa: S311  # the same in every run
    for slot, (first, last) in zip(slots, behind, strict=True):
        row: _Row = []
        weight = slot.answered / count
        for _ in range(count if weight else 0):
            chance = draw()
            seconds = first + (last - first) * draw() + computes(draw())
            if chance < slot.waiting:
                seconds -= math.log1p(-chance / slot.waiting) * slot.wait_seconds
            row.append((seconds, weight))
        yield row


@functools.lru_cache(maxsize=8)  # a search asks for the same times again and again
def _service_seconds(service: ServiceTimes) -> Callable[[float], float]:
    """Returns the service time at a share of its distribution, which is a gamma distribution."""
    mean = service.mean_seconds
    if not service.variation:
        return lambda _: mean
    if service.variation == 1:
        return lambda share: -math.log1p(-share) * mean
    shape = service.variation**-2
    draw = random.Random(0)  # noqa: S311  # the same in every run
    table = sorted(draw.gammavariate(shape, mean / shape) for _ in range(_SERVICE_POINTS))
    return lambda share: table[int(share * _SERVICE_POINTS)]


def _percentiles(rows: Sequence[_Row], shares: tuple[float, ...]) -> list[float | None]:
    points = sorted(itertools.chain.from_iterable(rows))
    reached = [*itertools.accumulate(weight for _, weight in points)]
    if not reached:
        return [None] * len(shares)
    last = len(points) - 1
    places = [min(bisect.bisect_left(reached, share * reached[-1]), last) for share in shares]
    return [points[place][0] for place in places]


def _course(traffic: Traffic, paid: Sequence[int], rows: Sequence[_Row]) -> Course:
    # Whole minutes, so that the periods of plots have round times.
    each = 6 * max(1, math.ceil(len(paid) / _BINS / 6))
    parts = [slice(at, at + each) for at in range(0, len(paid), each)]
    rates = [traffic.requests[part] for part in parts]
    return Course(
        each * SLOT_SECONDS,
        tuple(sum(paid[part]) / len(paid[part]) for part in parts),
        tuple(_percentiles(rows[part], (0.99,))[0] for part in parts),
        tuple(sum(rate) / len(rate) / SLOT_SECONDS for rate in rates),
    )
