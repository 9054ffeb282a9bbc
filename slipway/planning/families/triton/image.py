"""AWS's images, on which Slipway's own Triton images are built."""

from collections.abc import Iterable, Iterator

from slipway.config.environments import Environment
from slipway.facts.images import ImageFacts, UnknownImageError, image
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
        if (found := image_base(base)) is not None:
            yield found


def image_base(base: ImageFacts) -> ImageBase | None:
    """Returns AWS's image as a base; None where it is not published in the region."""
    if base.uri is None:
        return None
    return ImageBase(base_tag(base.version), base.uri, base.digest)
