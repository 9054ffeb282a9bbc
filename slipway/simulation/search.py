"""The cheapest target and bounds that hold a p99, among those of a grid."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from slipway.simulation.fleet_of import SimulatedFleet
from slipway.simulation.queues import ServiceTimes
from slipway.simulation.run import Goal, Simulation, hold
from slipway.simulation.scaling import Follows, Scaling
from slipway.simulation.traffic import SLOT_SECONDS, Traffic

_LOADS: Final = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
_MOST: Final = 1000
_POINTS: Final = 20_000
# Of requests that may fail although the p99 is held.
_FAILED: Final = 0.001


@dataclass(frozen=True)
class Choice:
    target: float
    minimum: int
    maximum: int
    found: Simulation


def cheapest(
    subject: SimulatedFleet,
    scaling: Scaling,
    service: ServiceTimes,
    traffic: Traffic,
    p99_seconds: float,
    *,
    start_seconds: float,
    begin: float,
) -> tuple[Choice | None, int]:
    """Returns the settings with the fewest instance hours that hold a p99, and how many were tried.

    Schedules stay as they are. The maximum is what the fleet reached without one.
    """
    best: Choice | None = None
    tried = 0
    for minimum, target in itertools.product(
        _minima(subject, scaling, service, traffic), list(_targets(scaling, service))
    ):
        resting = math.ceil(minimum / subject.per_instance) * traffic.seconds / 3600
        if best is not None and not scaling.schedules and resting >= best.found.instance_hours:
            break
        tried += 1
        settings = replace(scaling, target=target, minimum=minimum, maximum=_MOST)
        tuned = replace(subject, scaling=settings, count=max(subject.count, minimum))
        fewer = math.inf if best is None else best.found.instance_hours
        goal = Goal(p99_seconds, _FAILED, fewer)
        found = hold(
            tuned, service, traffic, goal, start_seconds=start_seconds, begin=begin, points=_POINTS
        )
        if found is not None:
            most = found.most_instances * subject.per_instance
            best = Choice(target, minimum, most, found)
    return best, tried


def _targets(scaling: Scaling, service: ServiceTimes) -> Iterator[float]:
    """Yields targets that keep an instance at shares of its capacity."""
    if scaling.follows is Follows.BACKLOG:
        yield from (service.concurrency * each for each in (1, 2, 5, 10, 20, 50))
        return
    whole = service.concurrency if scaling.follows is Follows.CONCURRENCY else 0
    for load in _LOADS:
        yield round(load * (whole or 60 * service.per_second), 3)


def _minima(
    subject: SimulatedFleet, scaling: Scaling, service: ServiceTimes, traffic: Traffic
) -> list[int]:
    """Returns minima from the config's to what holds the busiest slot, each half as much more."""
    peak = max(traffic.requests) / SLOT_SECONDS / service.per_second
    first = 0 if subject.bounds.keeps or scaling.wakes else 1
    found, count = {first}, max(1, first)
    while count < min(peak * 1.5 + 1, _MOST):
        found.add(count)
        count += max(1, count // 2)
    return sorted({*found, min(count, _MOST)})
