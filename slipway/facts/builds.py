"""CodeBuild's compute types: the disk of each, and its price where a published source gives it."""

import datetime
import functools
from collections.abc import Mapping

from slipway.facts.prices import Price
from slipway.facts.tables import read_table


@functools.cache
def _disks_gb() -> Mapping[str, int]:
    return {
        compute: size_gb
        for sizes_gb in read_table("builds.json")["disk_gb"].values()
        for compute, size_gb in sizes_gb.items()
    }


@functools.cache
def _prices() -> Mapping[tuple[str, str], Price]:
    table = read_table("builds.json")
    sources = {
        name: (datetime.date.fromisoformat(source["as_of"]), source["description"])
        for name, source in table["sources"].items()
    }
    return {
        (region, compute): Price(usd, *sources[source])
        for region, by_source in table["usd_per_minute"].items()
        for source, prices in by_source.items()
        for compute, usd in prices.items()
    }


def build_disk_gb(compute: str) -> int:
    """Returns the disk of a compute type, for example `medium`."""
    return _disks_gb()[compute]


def build_price_per_minute(compute: str, region: str) -> Price | None:
    """Returns what a minute of a build costs in USD, or None where that is unknown."""
    return _prices().get((region, compute))
