"""The image of a container, and its host image.

The deployment says which image a container has; here it becomes part of the plan.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.errors import Kind, Problem
from slipway.facts.images import ImageFacts, UnknownImageError, image, inference_amis
from slipway.facts.instances import InstanceFacts
from slipway.planning.artifacts import UNPUBLISHED
from slipway.planning.deployment import Deployment
from slipway.planning.plan import ImageBase, ImagePlan


def image_plan(
    deployment: Deployment, image_digests: Mapping[str, str], *, allow_unpublished: bool
) -> ImagePlan | Problem:
    """Returns the image, or why there is none to deploy yet.

    `image_digests` has the fingerprint of the sources of each image that Slipway builds, by family.
    """
    family, environment = deployment.image_family, deployment.environment
    if family is None:
        return deployment.given_image
    digest = image_digests.get(family)
    if digest is None and not allow_unpublished:
        return Problem(
            Code.NO_IMAGE,
            Kind.STATE,
            f"Slipway has no image for the container `{deployment.container}` yet",
            "`-c allow-unpublished=true` synthesises the deployment for reading.",
            ("serving", "container"),
        )
    # The same sources on another base are another image.
    base = deployment.image_base
    return ImagePlan(
        environment.account,
        environment.region,
        f"{environment.repository_prefix}{family}",
        f"{base.pinned_tag}-{digest or UNPUBLISHED}",
        base.uri,
    )


def wanted_bases(
    base_of: Callable[[ImageFacts], ImageBase | None],
    environment: Environment,
    wanted: Iterable[tuple[str, str]],
) -> Iterator[ImageBase]:
    """Yields the bases among AWS's images that configs name, as far as the region has them."""
    for framework, version in wanted:
        try:
            found = base_of(image(framework, version, environment.region))
        except UnknownImageError:
            continue  # a rule refuses every config that needs it
        if found is not None:
            yield found


def inference_ami(deployment: Deployment, own: Collection[InstanceFacts]) -> str | None:
    """Returns a variant's host image: as configured, or as the container's CUDA or Neuron needs it.

    None where the variant's own types have no accelerator that its driver is for: SageMaker refuses
    a GPU's host image on a type without one (`ami_fits`).
    """
    chosen = deployment.config.endpoint.inference_ami_version
    if chosen is not None:
        return chosen
    needed = deployment.needed_host_image
    if needed is None or not any(ami_fits(needed, instance) for instance in own):
        return None
    return needed


def ami_fits(ami: str, instance: InstanceFacts) -> bool:
    """Returns whether a host image has the driver of the type's accelerator.

    AWS's words where it has not: "Invalid combination: instance m5 and Cuda 12.2. Please provide a
    supported configuration for this region."
    (https://github.com/aws/sagemaker-python-sdk/pull/5093, read 2026-11-22).
    """
    accelerator = instance.accelerator
    if accelerator is None or instance.name.startswith("ml.inf1."):
        return False
    is_for_neuron = inference_amis()[ami].neuron_driver is not None
    return accelerator.kind == "neuron" if is_for_neuron else accelerator.is_nvidia_gpu
