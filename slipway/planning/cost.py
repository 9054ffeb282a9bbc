"""What a deployment costs: the bounds and what is expected, of published prices only.

A figure that needs a price which no source gives is None, never 0 and never a guess. Requests,
traffic and what lies in S3 depend on use and are in no figure.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from slipway.facts.prices import (
    DashboardPrice,
    Price,
    instance_price_per_hour,
    volume_price_per_gb_month,
)

HOURS_PER_MONTH = 730
"""365 days of 24 hours, divided by 12: the month of AWS's own calculators."""

VOLUME = "EBS volumes"
"""Stands in `CostEstimate.unknown` for the volumes' price."""


@dataclass(frozen=True)
class Fleet:
    """The instances of one variant, of types in order of preference.

    The size of each instance's ML storage volume is None where nothing says it, and for a local
    disk, which the instance's price has in it.
    """

    instance_types: tuple[str, ...]
    minimum_count: int
    expected_count: int
    maximum_count: int
    volume_size_gb: int | None = None


@dataclass(frozen=True)
class UsdPerMonth:
    """A cost in USD a month of 730 hours, rounded to cents; None where a price is unknown.

    The least is of the fewest instances of the cheapest type, and the most is of the most instances
    of the dearest. Expected are the instances at creation, of the preferred type.
    """

    minimum: float | None
    expected: float | None
    maximum: float | None


@dataclass(frozen=True)
class HourlyPrice:
    """What one instance of a preferred type costs an hour on demand; None where unknown."""

    instance_type: str
    usd: float | None


@dataclass(frozen=True)
class PriceSource:
    """Where prices of the estimate are from, and the day they were right, as `YYYY-MM-DD`."""

    as_of: str
    description: str


@dataclass(frozen=True)
class CostEstimate:
    """What a deployment costs on demand.

    Args:
        instances: of all variants together.
        volumes: of the ML storage volumes, which are not in `instances`; None where no size is
            known.
        hourly: of each variant's preferred type, each type once.
        sources: of every price used, each once.
        unknown: what has no published price in the region: instance types, and `VOLUME`.
        dashboard: price of the dashboard, which is in no sum because an account has some for
            nothing; None without a dashboard, or without a price in USD.
    """

    region: str
    instances: UsdPerMonth
    volumes: UsdPerMonth | None
    hourly: tuple[HourlyPrice, ...]
    sources: tuple[PriceSource, ...]
    unknown: tuple[str, ...]
    dashboard: DashboardPrice | None = None


def estimate_cost(
    fleets: Sequence[Fleet],
    region: str,
    *,
    dashboard: DashboardPrice | None = None,
    price_per_hour: Callable[[str, str], Price | None] = instance_price_per_hour,
    price_per_gb_month: Callable[[str], Price | None] = volume_price_per_gb_month,
) -> CostEstimate:
    names = dict.fromkeys(name for fleet in fleets for name in fleet.instance_types)
    prices = {name: price_per_hour(name, region) for name in names}
    usd = {name: price.usd if price else None for name, price in prices.items()}
    sized = [fleet for fleet in fleets if fleet.volume_size_gb is not None]
    volume_price = price_per_gb_month(region) if sized else None
    used = [*prices.values(), volume_price]
    sources = [PriceSource(p.as_of.isoformat(), p.source) for p in used if p is not None]
    unknown = [name for name, price in prices.items() if price is None]
    preferred = dict.fromkeys(fleet.instance_types[0] for fleet in fleets)
    return CostEstimate(
        region=region,
        instances=sum_of([_instances(fleet, usd) for fleet in fleets]),
        volumes=sum_of([_volumes(fleet, volume_price) for fleet in sized]) if sized else None,
        hourly=tuple(HourlyPrice(name, usd[name]) for name in preferred),
        sources=tuple(dict.fromkeys(sources)),
        unknown=(*unknown, *((VOLUME,) if sized and volume_price is None else ())),
        dashboard=dashboard,
    )


def _instances(fleet: Fleet, usd: dict[str, float | None]) -> UsdPerMonth:
    pool = [usd[name] for name in fleet.instance_types]
    known = [price for price in pool if price is not None]
    # What is unknown could be the cheapest of the pool, or the dearest.
    bounded = len(known) == len(pool)
    return UsdPerMonth(
        times(fleet.minimum_count * HOURS_PER_MONTH, min(known) if bounded else None),
        times(fleet.expected_count * HOURS_PER_MONTH, pool[0]),
        times(fleet.maximum_count * HOURS_PER_MONTH, max(known) if bounded else None),
    )


def _volumes(fleet: Fleet, price: Price | None) -> UsdPerMonth:
    size_gb = fleet.volume_size_gb or 0
    usd = price.usd if price else None
    return UsdPerMonth(
        times(fleet.minimum_count * size_gb, usd),
        times(fleet.expected_count * size_gb, usd),
        times(fleet.maximum_count * size_gb, usd),
    )


def times(quantity: float, usd: float | None) -> float | None:
    # Nothing of an unknown price is known: it costs nothing.
    if quantity == 0:
        return 0.0
    return None if usd is None else quantity * usd


def sum_of(costs: Sequence[UsdPerMonth]) -> UsdPerMonth:
    """Returns the sum of each bound; None where a part is unknown."""
    return UsdPerMonth(
        _total([cost.minimum for cost in costs]),
        _total([cost.expected for cost in costs]),
        _total([cost.maximum for cost in costs]),
    )


def _total(parts: Sequence[float | None]) -> float | None:
    known = [part for part in parts if part is not None]
    return round(sum(known), 2) if len(known) == len(parts) else None
