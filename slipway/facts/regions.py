"""Which instance types are hosted in which region.

`python -m tools.refresh_facts.regions` writes the table and names its source.
"""

import functools
from collections.abc import Mapping
from types import MappingProxyType

from slipway.facts.tables import read_table


@functools.cache
def _types_by_region() -> Mapping[str, frozenset[str]]:
    table = read_table("regions.json")
    families: dict[str, list[str]] = table["families"]
    return MappingProxyType(
        {
            region: frozenset(row["types"]).union(
                f"ml.{family}.{size}" for family in row["families"] for size in families[family]
            )
            for region, row in table["regions"].items()
        }
    )


def hosted_types(region: str) -> frozenset[str] | None:
    """Returns the instance types that hosting offers in a region; None for an unknown region.

    A type that the source lists in no region at all is in none of these sets, though hosting
    accepts its name: `hosting_regions` says so.
    """
    return _types_by_region().get(region)


@functools.cache
def hosting_regions(instance_type: str) -> tuple[str, ...] | None:
    """Returns the regions that host an instance type, sorted; None where no source lists it."""
    regions = sorted(
        region for region, types in _types_by_region().items() if instance_type in types
    )
    return tuple(regions) or None
