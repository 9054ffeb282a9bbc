"""The on-demand prices of hosting and builds that a published source gives.

A price that no source gives is None, never 0: a sum must say that a part is unknown. `python -m
tools.refresh_facts.prices` reads the current prices from the Pricing API.
"""

import datetime
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slipway.facts.tables import read_table


@dataclass(frozen=True, slots=True)
class Price:
    """A price in USD: per hour, GB and month or another unit that the function's name says.

    `as_of` is the day the source read it, or the last day it was charged.
    """

    usd: float
    as_of: datetime.date
    source: str


@dataclass(frozen=True, slots=True)
class DashboardPrice:
    """What dashboards in CloudWatch cost.

    `free_dashboards` of an account cost nothing, with at most `free_metrics` metrics each. `as_of`
    is `YYYY-MM-DD`.
    """

    usd_per_month: float
    free_dashboards: int
    free_metrics: int
    as_of: str
    source: str


def dashboard_price(region: str) -> DashboardPrice | None:
    """Returns the price, the same in every region; None in China, whose prices are not in USD."""
    return None if region.startswith("cn-") else DashboardPrice(**read_table("dashboards.json"))


@functools.cache
def _volumes() -> Mapping[str, Price]:
    table = read_table("prices.json")
    found = {
        region: _price(usd, table["sources"][source])
        for region, by_source in table["volumes_usd_per_gb_month"].items()
        for source, usd in by_source.items()
    }
    return MappingProxyType(found)


@functools.cache
def _by_region(table_name: str, key: str) -> Mapping[tuple[str, str], Price]:
    table = read_table(table_name)
    found = {
        (region, name): _price(usd, table["sources"][source])
        for region, by_source in table[key].items()
        for source, prices in by_source.items()
        for name, usd in prices.items()
    }
    return MappingProxyType(found)


def _price(usd: float, source: Mapping[str, str]) -> Price:
    return Price(usd, datetime.date.fromisoformat(source["as_of"]), source["description"])


def instance_price_per_hour(instance_type: str, region: str) -> Price | None:
    """Returns what one hosting instance costs an hour on demand, or None where that is unknown."""
    return _by_region("prices.json", "instances_usd_per_hour").get((region, instance_type))


def volume_price_per_gb_month(region: str) -> Price | None:
    """Returns what a GB of a hosting instance's EBS volume costs a month, or None: unknown."""
    return _volumes().get(region)


def service_price(name: str, region: str) -> Price | None:
    """Returns what CloudWatch, S3 or Lambda charge for a unit, or None where that is unknown.

    The name is a row of `services.json`, which has the unit in it.
    """
    return _by_region("services.json", "usd").get((region, name))


def build_price_per_minute(compute: str, region: str) -> Price | None:
    """Returns what a minute of a build costs in USD, or None where that is unknown."""
    return _by_region("builds.json", "usd_per_minute").get((region, compute))


@functools.cache
def build_disk_gb(compute: str) -> int:
    """Returns the disk of a compute type of CodeBuild, for example `medium`."""
    sizes_gb: Mapping[str, Mapping[str, int]] = read_table("builds.json")["disk_gb"]
    return next(sizes[compute] for sizes in sizes_gb.values() if compute in sizes)
