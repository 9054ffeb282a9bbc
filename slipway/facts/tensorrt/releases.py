"""The TensorRT releases that Slipway's own container is built on.

tensorrt.json names its sources. Volta (V100, ml.p3) is the reason that there are two: TensorRT 10.5
removed it.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slipway.facts.instances import architecture
from slipway.facts.tables import read_table


@dataclass(frozen=True, slots=True)
class TensorRTRelease:
    """One release, such as `10.13`; its base is the tag of NVIDIA's image, such as `25.09-py3`."""

    version: str
    base_image: str
    cuda_version: str
    minimum_compute_capability: str

    def runs_on(self, compute_capability: str) -> bool:
        """Returns whether it supports GPUs of a compute capability, for example `sm70`."""
        return architecture(compute_capability) >= architecture(self.minimum_compute_capability)


@functools.cache
def tensorrt_releases() -> Mapping[str, TensorRTRelease]:
    rows = read_table("tensorrt/tensorrt.json")["releases"]
    return MappingProxyType(
        {
            version: TensorRTRelease(
                version, row["base_image"], row["cuda"], row["minimum_compute_capability"]
            )
            for version, row in rows.items()
        }
    )


def newest_release_for(compute_capabilities: frozenset[str]) -> TensorRTRelease:
    """Returns the newest release that supports all of some GPUs; the newest where none does."""
    releases = tuple(tensorrt_releases().values())
    for release in reversed(releases):
        if all(release.runs_on(capability) for capability in compute_capabilities):
            return release
    return releases[-1]
