"""The images that Slipway's Dockerfiles make, each on the bases that its family takes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, Self

from slipway.embedded_aws.containers.images import built_name
from slipway.facts import images
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.facts.tensorrt.releases import tensorrt_releases
from slipway.facts.triton.releases import TRITON, triton_bases
from slipway.planning.families.lmi import handlers as lmi
from slipway.planning.families.neuron import hardware as neuron
from slipway.planning.families.tensorrt import deployment as tensorrt
from slipway.planning.families.triton import deployment as triton
from slipway.planning.plan import ImageBase

Version = tuple[int, int]
ROOT: Final = Path(__file__).parents[2]
SERVING: Final = "serving"
COMPILER: Final = "compiler"
_REGION: Final = "us-east-1"
# NVIDIA's container release notes 24.09 and 25.09.
_PYTHONS_OF_TENSORRT: Final = {"24.09-py3": (3, 10), "25.09-py3": (3, 12)}
# The oldest and the newest Python that DJL's images bring with a framework of Slipway's handlers.
_LMI_BASES: Final = (("djl-deepspeed", "0.21.0"), ("djl-deepspeed", "0.27.0"))
_MANAGED: Final = re.compile(r"uv python install --no-bin (\S+)")


@dataclass(frozen=True)
class Image:
    """One image, by its name FAMILY-VERSION on a command line.

    `base` is the address of its base, which tags of a deployment name as `base_tag`. The base has
    a Python of its own. `target` is a stage of the Dockerfile.
    """

    name: str
    family: str
    base_tag: str
    base: str
    python: Version
    target: str = SERVING

    @property
    def tag(self) -> str:
        """Returns the name under which the engine keeps it, apart from images of a deployment."""
        serving = built_name(self.family, self.base_tag)
        return serving if self.target == SERVING else f"{serving}-{self.target}"

    @property
    def compiler(self) -> Self:
        return replace(self, name=f"{self.name}-{COMPILER}", target=COMPILER)

    @property
    def dockerfile(self) -> Path:
        return ROOT / "containers" / self.family / "Dockerfile"

    @property
    def managed_python(self) -> str | None:
        """Returns the version of Python that its Dockerfile has uv download, or None."""
        found = _MANAGED.search(self.dockerfile.read_text("utf-8"))
        return found[1] if found else None


def catalogue() -> Iterator[Image]:
    for release in tensorrt_releases().values():
        base = tensorrt.image_base(release)
        python = _PYTHONS_OF_TENSORRT[release.base_image]
        name = f"tensorrt-{release.version}"
        yield Image(name, "tensorrt", base.pinned_tag, base.uri, python)
    for chip, framework in neuron.NEURON_BASES.items():
        found = images.image(framework, newest_neuron_version(framework), _REGION)
        yield _aws(chip, "neuron", neuron.image_base(found), found)
    for version in triton_bases():
        found = images.image(TRITON, version, _REGION)
        yield _aws(f"triton-{version}", "triton", triton.image_base(found), found)
    for framework, version in _LMI_BASES:
        found = images.image(framework, version, _REGION)
        yield _aws(f"lmi-{version}", "lmi", lmi.image_base(found), found)


def compilers() -> Iterator[Image]:
    """Yields the images that compile for the TensorRT container.

    The Neuron compiler's packages are on an index of AWS's. The compiler of Triton's models has the
    same program and the same packages as TensorRT's.
    """
    return (image.compiler for image in catalogue() if image.family == "tensorrt")


def _aws(name: str, family: str, base: ImageBase | None, found: images.ImageFacts) -> Image:
    if base is None or found.python_version is None:
        raise LookupError(f"images.json has no address or no Python of {found.tag}")
    major, minor = map(int, found.python_version.split("."))
    return Image(name, family, base.pinned_tag, base.uri, (major, minor))
