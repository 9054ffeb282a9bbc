"""NVIDIA's images, on which Slipway's TensorRT images are built."""

from collections.abc import Iterable, Iterator

from slipway.config.environments import Environment
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
    registry = environment.image_builds.registry or _REGISTRY
    for release in tensorrt_releases().values():
        yield ImageBase(base_tag(release), f"{registry}/nvidia/tensorrt:{release.base_image}")
