"""The backends in AWS's Triton image, and the file that each loads.

backends.json names its sources.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slipway.facts.tables import read_table

ENSEMBLE = "ensemble"
"""Platform of a model that is made of others; it has no backend."""


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend.

    Args:
        platforms: each `platform` that means this backend, with the file that it loads. The first
            one is the default; its name is empty where the backend has no platform.
        completes: whether Triton can read inputs, outputs and the batch size from the model itself.
        until: last release of AWS's image with it, `YY.MM`; None where all have it.
    """

    name: str
    platforms: Mapping[str, str]
    completes: bool
    until: str | None

    def model_file(self, platform: str) -> str | None:
        """Returns the file that a platform loads by default; None where it may be any."""
        return self.platforms.get(platform) or next(iter(self.platforms.values()), None)

    def is_in(self, release: str) -> bool:
        """Returns whether AWS's image of a release, `YY.MM`, has it."""
        return self.until is None or release <= self.until


@functools.cache
def backends() -> Mapping[str, Backend]:
    rows = read_table("triton/backends.json")["backends"]
    return MappingProxyType(
        {
            name: Backend(name, row["platforms"], row["completes"], row.get("until"))
            for name, row in rows.items()
        }
    )


def backend_of_platform(platform: str) -> Backend | None:
    """Returns the backend that a `platform` means; None if there is none of that name."""
    found = (each for each in backends().values() if platform and platform in each.platforms)
    return next(found, None)


def backend_of_file(name: str) -> Backend | None:
    """Returns the backend that takes a file for its model, where config.pbtxt names none."""
    return next((each for each in backends().values() if name in each.platforms.values()), None)
