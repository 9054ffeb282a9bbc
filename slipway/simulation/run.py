"""One simulation: the queue, the fleet and the cost over a traffic.

The times of requests are drawn for each slot from its distributions, by a lattice that differs from
slot to slot. So the percentiles of a whole day have millions of points, and no chance in them.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from slipway.planning.cost import HOURS_PER_MONTH
from slipway.simulation.fleet_of import SimulatedFleet
from slipway.simulation.queues import Queue, ServiceTimes, Slot
from slipway.simulation.scaling import Fleet
from slipway.simulation.traffic import SLOT_SECONDS, Numbers, Traffic

_POINTS: Final = 2_000_000
_MOST_POINTS: Final = 4096
_SERVICE_POINTS: Final = 200_000
_BINS: Final = 288
# Steps of a lattice in three dimensions: powers of the root of x^4 = x + 1.
_ROOT: Final = 1.2207440846057596


@dataclass(frozen=True)
class Course:
    """Values over time, in periods of one length.

    Args:
        instances: mean number that is paid for.
        p99_seconds: of the requests that are answered; None without any.
        per_second: requests.
    """

    period_seconds: int
    instances: tuple[float, ...]
    p99_seconds: tuple[float | None, ...]
    per_second: tuple[float, ...]


@dataclass(frozen=True)
class Simulation:
    """What a fleet does under a traffic.

    Args:
        requests: of the whole traffic.
        refused: by full queues, or for want of an instance.
        timed_out: without an answer within the time limit.
        mean_wait_seconds: before they are computed, of those that are answered.
        p50_seconds: of those that are answered, computing included; None without any.
        instance_hours: that are paid for.
        usd: for the length of the traffic, on demand; None where the price is unknown.
        usd_per_month: if the traffic goes on like this for 730 hours.
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
        """Returns the share of requests without an answer."""
        return (self.refused + self.timed_out) / self.requests if self.requests else 0.0


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

    Args:
        subject: the fleet.
        service: of its instances, or copies.
        traffic: its requests.
        start_seconds: from a decision to scale until the new instance serves.
        begin: of the traffic, in seconds since the epoch.
        points: drawn times of requests in all.
    """
    queue = Queue(service, subject.bounds)
    fleet = Fleet(subject.scaling, subject.count, start_seconds, begin)
    slots: list[Slot] = []
    paid: list[int] = []
    for index, requests in enumerate(traffic.requests.tolist()):
        fleet.begin_slot(float(index * SLOT_SECONDS))
        slot = queue.step(requests, fleet.serving, SLOT_SECONDS)
        slots.append(slot)
        paid.append(math.ceil(fleet.wanted / subject.per_instance))
        ended = float((index + 1) * SLOT_SECONDS)
        fleet.end_slot(ended, requests, slot.in_flight, 0.0 if fleet.serving else slot.refused)
    return _summed(subject, service, traffic, slots, paid, points)


def _summed(
    subject: SimulatedFleet,
    service: ServiceTimes,
    traffic: Traffic,
    slots: list[Slot],
    paid: list[int],
    points: int,
) -> Simulation:
    columns = np.array([tuple(vars(slot).values()) for slot in slots])
    answered, refused, lost, backlog, capacity, waiting, wait, _ = columns.T
    behind = _behind(answered, backlog, float(capacity[-1]))
    times, weights, mean_wait = _times(service, answered, behind, waiting, wait, points)
    limit = subject.bounds.seconds
    late = np.zeros_like(times, dtype=bool) if limit is None else times > limit
    timed_out = float(lost.sum() + weights[late].sum())
    weights = np.where(late, 0.0, weights)
    hours = sum(paid) * SLOT_SECONDS / 3600
    usd = None if subject.usd_per_hour is None else hours * subject.usd_per_hour
    p50, p99 = _percentiles(times, weights, (0.5, 0.99))
    return Simulation(
        float(traffic.requests.sum()),
        float(refused.sum()),
        timed_out,
        mean_wait,
        p50,
        p99,
        min(paid),
        max(paid),
        hours,
        None if usd is None else round(usd, 2),
        None if usd is None else round(usd / traffic.seconds * 3600 * HOURS_PER_MONTH, 2),
        _course(traffic, paid, times, weights),
    )


def _behind(answered: Numbers, backlog: Numbers, last_capacity: float) -> tuple[Numbers, Numbers]:
    """Returns the wait behind the backlog, at the begin and the end of each slot.

    Requests leave in the order in which they came.

    Args:
        answered: requests of each slot.
        backlog: at the end of each slot.
        last_capacity: requests a second, at which a backlog at the very end would go on draining.
    """
    edges = np.arange(len(answered) + 1, dtype=np.float64) * SLOT_SECONDS
    waiting = np.concatenate([[0.0], backlog])
    came = np.concatenate([[0.0], np.cumsum(answered)])
    # A trace of slope, because the inverse needs growing numbers.
    left = np.maximum.accumulate(came - waiting) + 1e-9 * edges

    def at(requests: Numbers, moments: Numbers, is_behind: NDArray[np.bool_]) -> Numbers:
        seconds = np.interp(requests, left, edges) - moments
        if last_capacity:
            seconds += np.maximum(requests - left[-1], 0.0) / last_capacity
        return np.where(is_behind, np.maximum(seconds, 0.0), 0.0)

    # The first request of a slot, and not the one before it.
    first = at(came[:-1] + 0.01, edges[:-1], (waiting[:-1] > 0) | (waiting[1:] > 0))
    return first, at(came[1:], edges[1:], waiting[1:] > 0)


def _times(
    service: ServiceTimes,
    answered: Numbers,
    behind: tuple[Numbers, Numbers],
    waiting: Numbers,
    wait: Numbers,
    points: int,
) -> tuple[Numbers, Numbers, float]:
    """Returns drawn times of each slot, a row each, their weights, and the mean wait."""
    count = min(max(points // len(answered), 16), _MOST_POINTS)
    order = np.arange(len(answered) * count, dtype=float).reshape(len(answered), count)
    chance = (order / _ROOT) % 1
    waits = np.clip(chance / np.maximum(waiting[:, None], 1e-12), 0, 1 - 1e-12)
    drawn = np.where(chance < waiting[:, None], -np.log1p(-waits) * wait[:, None], 0.0)
    first, last = behind
    share = (order / _ROOT**2) % 1
    drawn += first[:, None] + (last - first)[:, None] * share
    total = float(answered.sum())
    means = waiting * wait + (first + last) / 2
    mean = float((means * answered).sum() / total) if total else 0.0
    drawn += _service_seconds(service, (order / _ROOT**3) % 1)
    weights = np.broadcast_to(answered[:, None] / count, drawn.shape)
    return drawn, weights, mean


def _service_seconds(service: ServiceTimes, share: Numbers) -> Numbers:
    """Returns service times at shares of their distribution, which is a gamma distribution."""
    if not service.variation:
        return np.full_like(share, service.mean_seconds)
    if service.variation == 1:
        return -np.log1p(-share) * service.mean_seconds
    shape = service.variation**-2
    drawn = np.random.default_rng(0).gamma(shape, service.mean_seconds / shape, _SERVICE_POINTS)
    table = np.sort(drawn)
    return np.interp(share, (np.arange(len(table)) + 0.5) / len(table), table)


def _percentiles(
    times: Numbers, weights: Numbers, shares: tuple[float, ...]
) -> tuple[float | None, ...]:
    flat = times.ravel()
    order = np.argsort(flat)
    reached = np.cumsum(weights.ravel()[order])
    total = reached[-1]
    if not total:
        return (None,) * len(shares)
    places = np.searchsorted(reached, np.array(shares) * total)
    return tuple(float(flat[order[min(place, len(order) - 1)]]) for place in places)


def _course(traffic: Traffic, paid: list[int], times: Numbers, weights: Numbers) -> Course:
    # Whole minutes, so that the periods of plots have round times.
    each = 6 * max(1, math.ceil(len(paid) / _BINS / 6))
    starts = range(0, len(paid), each)
    p99 = [
        _percentiles(times[at : at + each], weights[at : at + each], (0.99,))[0] for at in starts
    ]
    rates = [float(traffic.requests[at : at + each].mean()) / SLOT_SECONDS for at in starts]
    counts = [float(np.mean(paid[at : at + each])) for at in starts]
    return Course(each * SLOT_SECONDS, tuple(counts), tuple(p99), tuple(rates))
