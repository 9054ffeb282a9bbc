"""AWS's image that a config runs in or is built on, and whether Slipway builds the image."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import (
    LmiServing,
    NeuronServing,
    TensorRTServing,
    TritonServing,
)
from slipway.facts.images import (
    ImageFacts,
    UnknownImageError,
    image,
    newest_neuron_version,
)
from slipway.planning.plan import ImagePlan

TRITON = "sagemaker-tritonserver"
# The images that Slipway's own Neuron containers are built on.
NEURON_BASES: Mapping[str, str] = {
    "neuron": "pytorch-inference-neuron",
    "neuronx": "pytorch-inference-neuronx",
}


def image_family(config: ModelConfig) -> str | None:
    """Returns the container family whose image Slipway builds for a config, or None.

    The image is in the repository `slipway/FAMILY`, made of what `IMAGE_SOURCES` lists.
    """
    serving = config.serving
    if isinstance(serving, LmiServing):
        return serving.container if serving.image == "built" else None
    return serving.container if isinstance(serving, (TensorRTServing, NeuronServing)) else None


def image_name(config: ModelConfig) -> tuple[str, str] | None:
    """Returns framework and version, as facts/images.json has them, of AWS's image.

    It is the container itself, or the base of Slipway's own Neuron or LMI container. It is None for
    a custom image, and for Slipway's TensorRT container, whose base is NVIDIA's.
    """
    serving = config.serving
    if isinstance(serving, LmiServing):
        return serving.framework, serving.version
    if isinstance(serving, TritonServing):
        return TRITON, serving.version
    if isinstance(serving, NeuronServing):
        framework = NEURON_BASES[serving.framework]
        return framework, newest_neuron_version(framework)
    return None


def aws_image(config: ModelConfig, region: str) -> ImageFacts | None:
    """Returns the facts of AWS's image, or of AWS's base of Slipway's image.

    None if there is none, and if no image of that version or region is known: a rule of its own
    reports that.
    """
    name = image_name(config)
    if name is None:
        return None
    try:
        return image(*name, region)
    except UnknownImageError:
        return None


def neuron_base_tag(framework: str, version: str) -> str:
    """Returns the beginning of the tag of Slipway's Neuron container, which names its base."""
    return f"{framework.removeprefix('pytorch-inference-')}{version}"


def compiler_image(serving: ImagePlan) -> ImagePlan:
    """Returns the image that compiles for a container of Slipway, built from the same sources."""
    return replace(serving, tag=f"{serving.tag}-compiler")
