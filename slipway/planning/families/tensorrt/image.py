"""NVIDIA's images, on which Slipway's TensorRT images are built."""

from collections.abc import Iterable, Iterator

from slipway.config.environments import Environment
from slipway.facts.images import base_digest
from slipway.facts.tensorrt.releases import TensorRTRelease, tensorrt_releases
from slipway.planning.plan import ImageBase

_REGISTRY = "nvcr.io"


def base_tag(release: TensorRTRelease) -> str:
    """Returns the beginning of the tag of an image, which names the release."""
    return f"trt{release.version}"


def image_bases(
    environment: Environment, wanted: Iterable[tuple[str, str]] = ()
) -> Iterator[ImageBase]:
    """Yields the base of every release.

    Args:
        environment: may name a registry that mirrors NVIDIA's.
        wanted: unused: all are built.
    """
    for release in tensorrt_releases().values():
        yield image_base(release, environment.image_builds.registry)


def image_base(release: TensorRTRelease, registry: str | None = None) -> ImageBase:
    """Returns the base of one release, in NVIDIA's registry or in one that mirrors it."""
    registry = registry or _REGISTRY
    image = f"nvidia/tensorrt:{release.base_image}"
    return ImageBase(base_tag(release), f"{registry}/{image}", base_digest(image))
