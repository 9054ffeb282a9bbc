"""The Triton releases of AWS's images, with the TensorRT in them.

triton.json names its sources. Slipway builds its own Triton image on some of them. images.json has
CUDA, Python and the GPUs of each.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from slipway.facts.tables import known, read_table

TRITON = "sagemaker-tritonserver"
"""AWS's image, as images.json names it."""


@dataclass(frozen=True, slots=True)
class TritonRelease:
    """One release.

    Args:
        version: of AWS's image, for example `25.09`.
        bindings: package on PyPI that is Python's way to that TensorRT; None if Slipway builds no
            image on the release.
        no_base: why Slipway builds none, as half a sentence; None if it does.
    """

    version: str
    tensorrt_version: str | None
    bindings: str | None
    no_base: str | None

    @property
    def is_base(self) -> bool:
        return self.no_base is None


@functools.cache
def triton_releases() -> Mapping[str, TritonRelease]:
    rows = read_table("triton/triton.json")["releases"]
    return MappingProxyType(
        {
            version: TritonRelease(version, known(row["tensorrt"]), row["bindings"], row["no_base"])
            for version, row in rows.items()
        }
    )


def advisories_since(version: str) -> tuple[str, ...]:
    """Returns NVIDIA's advisories (CVEs) that a release later than this one fixed."""
    fixed = read_table("triton/triton.json")["advisories"]
    return tuple(cve for release, cves in fixed.items() if release > version for cve in cves)


def reads_nested_json(version: str) -> bool:
    """Returns whether the release survives JSON of any depth."""
    return version >= str(read_table("triton/triton.json")["nested_json_since"])


def triton_bases() -> tuple[str, ...]:
    """Returns the versions that Slipway's own image can be built on, oldest first."""
    return tuple(version for version, release in triton_releases().items() if release.is_base)
