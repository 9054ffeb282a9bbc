"""Serving families that other installed packages bring.

A package names the parts of a family as entry points in the group `slipway`: `NAME.section`,
`NAME.family` and `NAME.packaging`. Each is a function without parameters that returns the part, so
that no part is imported before its stage. Installing the package is enough: no file of Slipway
changes.
"""

import functools
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any


def extensions(part: str) -> Mapping[str, Any]:
    """Returns what installed packages add to a registry, by the family's name.

    Args:
        part: `section`, `family` or `packaging`.
    """
    found = {each.name.removesuffix(f".{part}"): each for each in _all()}
    return MappingProxyType(
        {name: each.load()() for name, each in found.items() if name != each.name}
    )


@functools.cache
def _all() -> tuple[EntryPoint, ...]:
    """Reads them once: each installed package has a file to look into."""
    return tuple(entry_points(group="slipway"))
