"""Inferentia and Trainium as instance types and AWS's images have them (facts: neuron)."""

import re
from collections.abc import Iterable, Iterator, Mapping

from slipway.config.environments import Environment
from slipway.facts.images import ImageFacts, frameworks, image, regions, versions
from slipway.facts.instances import InstanceFacts
from slipway.facts.neuron.drivers import newest_neuron_version
from slipway.planning.deployment import Deployment
from slipway.planning.placements import Placement
from slipway.planning.plan import ImageBase

# Family of instances to what is compiled for it. trn1n differs from trn1 in its network alone.
TARGETS: Mapping[str, str] = {"inf1": "inf1", "inf2": "inf2", "trn1": "trn1", "trn1n": "trn1"}
FAMILIES_OF = {"neuron": "inf1", "neuronx": "inf2 and Trainium"}
AN_INSTANCE_OF = {
    "neuron": "an inf1 type, for example `ml.inf1.xlarge`",
    "neuronx": "an inf2 or trn1 type, for example `ml.inf2.xlarge`",
}


def instance_family(instance: InstanceFacts) -> str:
    """Returns the family of a type, for example `inf2`."""
    return instance.name.split(".")[1]


def neuron_frameworks(deployment: Deployment) -> Iterator[tuple[Placement, str]]:
    """Yields each placement on Neuron devices, with the kind of image that they need."""
    for item in deployment.placements:
        accelerator = item.instance.accelerator
        if accelerator is not None and accelerator.neuron_generation is not None:
            yield item, "neuron" if accelerator.has_core_pipeline else "neuronx"


def devices(instance: InstanceFacts) -> str:
    """Returns the accelerators of a type for messages."""
    accelerator = instance.accelerator
    return f"{accelerator.count} x {accelerator.product}" if accelerator else "no accelerator"


def aws_neuron_image(image_uri: str) -> ImageFacts | None:
    """Returns the newest image of the repository that an image of AWS's for Neuron comes from.

    Its own tag does not matter. None for images that are not AWS's or not for Neuron.
    """
    registry, _, path = image_uri.partition("/")
    account, _, _, region, *_ = registry.split(".")
    repository = path.partition("@")[0].partition(":")[0]
    # DJL's repository holds images for GPUs too, and has another name than its frameworks.
    if repository not in frameworks() or region not in regions():
        return None
    known = [image(repository, version, region) for version in versions(repository)]
    if known[-1].accelerator not in ("neuron", "neuronx"):
        return None
    return known[-1] if any(facts.account == account for facts in known) else None


def aws_neuron_sdk(image_uri: str) -> str | None:
    """Returns the Neuron SDK that the tag of AWS's image names; None where there is no such tag."""
    facts = aws_neuron_image(image_uri)
    named = re.search(r":.*-sdk(\d+\.\d+\.\d+)", image_uri)
    return named[1] if facts is not None and named else None


NEURON_BASES: Mapping[str, str] = {
    "neuron": "pytorch-inference-neuron",
    "neuronx": "pytorch-inference-neuronx",
}
"""AWS's framework for each `framework` of the config."""


def image_bases(
    environment: Environment, wanted: Iterable[tuple[str, str]] = ()
) -> Iterator[ImageBase]:
    """Yields each of AWS's bases, whichever configs want, that the region has."""
    for framework in NEURON_BASES.values():
        base = image(framework, newest_neuron_version(framework), environment.region)
        # A rule refuses every config that would need a base without an address.
        if (found := image_base(base)) is not None:
            yield found


def image_base(base: ImageFacts) -> ImageBase | None:
    return ImageBase.of(base, f"{base.framework.removeprefix('pytorch-inference-')}{base.version}")
