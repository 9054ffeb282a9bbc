"""AWS's images, on which Slipway's own Triton images are built."""

from collections.abc import Iterable, Iterator

from slipway.config.environments import Environment
from slipway.facts.images import UnknownImageError, image
from slipway.facts.triton.releases import TRITON, triton_bases
from slipway.planning.plan import ImageBase


def base_tag(version: str) -> str:
    """Returns the beginning of the tag of Slipway's Triton container, which names its base."""
    return f"triton{version}"


def image_bases(environment: Environment, wanted: Iterable[tuple[str, str]]) -> Iterator[ImageBase]:
    """Yields each of AWS's images that Slipway's can be built on and that a config names.

    A base has more than 20 GB, and each is built twice, so none is built without need.

    Args:
        environment: gives the region.
        wanted: framework and version of the bases that configs name.
    """
    for framework, version in wanted:
        if framework != TRITON or version not in triton_bases():
            continue  # a rule refuses every config that needs it
        try:
            base = image(framework, version, environment.region)
        except UnknownImageError:
            continue  # no image is published in a region of that name, as a rule reports
        if base.uri is not None:
            yield ImageBase(base_tag(version), base.uri)
