"""The entry points with which other packages bring serving families; nothing is loaded here."""

import functools
import importlib.metadata
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from typing import Final

GROUP: Final = "slipway.families"


@functools.cache
def family_entries() -> Sequence[EntryPoint]:
    """Returns the entry points of the group, of every installed package."""
    found: dict[str, Sequence[EntryPoint]] = {}
    for package in importlib.metadata.distributions():
        # `importlib.metadata.entry_points` parses every package's, which takes ten times as long.
        if f"[{GROUP}]" in (package.read_text("entry_points.txt") or ""):
            # Of a package that is installed twice, Python imports the one that comes first.
            found.setdefault(package.name, [*package.entry_points.select(group=GROUP)])
    return [entry for entries in found.values() for entry in entries]
