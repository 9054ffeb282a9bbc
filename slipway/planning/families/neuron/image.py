"""AWS's images, on which Slipway's Neuron images are built."""

from collections.abc import Iterable, Iterator, Mapping

from slipway.config.environments import Environment
from slipway.facts.images import ImageFacts, image
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.planning.plan import ImageBase

NEURON_BASES: Mapping[str, str] = {
    "neuron": "pytorch-inference-neuron",
    "neuronx": "pytorch-inference-neuronx",
}
"""AWS's framework for each `framework` of the config."""


def base_tag(framework: str, version: str) -> str:
    """Returns the beginning of the tag of Slipway's Neuron container, which names its base."""
    return f"{framework.removeprefix('pytorch-inference-')}{version}"


def image_bases(
    environment: Environment, wanted: Iterable[tuple[str, str]] = ()
) -> Iterator[ImageBase]:
    """Yields each of AWS's bases that is published in the environment's region.

    Args:
        environment: gives the region.
        wanted: unused: all are built.
    """
    for framework in NEURON_BASES.values():
        base = image(framework, newest_neuron_version(framework), environment.region)
        # A rule refuses every config that would need a base without an address.
        if (found := image_base(base)) is not None:
            yield found


def image_base(base: ImageFacts) -> ImageBase | None:
    """Returns AWS's image as a base; None where it is not published in the region."""
    if base.uri is None:
        return None
    return ImageBase(base_tag(base.framework, base.version), base.uri, base.digest)
