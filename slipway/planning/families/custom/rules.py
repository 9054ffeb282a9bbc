"""Rules about an image of the user's own: its registry, its region, its Neuron SDK."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import FieldPath, Problem
from slipway.facts.neuron.drivers import neuron_driver_need, neuron_inference_ami
from slipway.planning.deployment import problem
from slipway.planning.families.custom.deployment import Custom
from slipway.planning.families.neuron.hardware import (
    AN_INSTANCE_OF,
    FAMILIES_OF,
    devices,
    neuron_frameworks,
)
from slipway.planning.vpc import vpc_plan


def image_has_its_regions_domain(custom: Custom) -> Iterator[Problem]:
    """China's registries have a domain of their own, and no other region's has it."""
    registry, region = custom.serving.image_uri.partition("/")[0], custom.ecr_region
    if region is None:
        return
    in_china = region.startswith("cn-")
    if registry.endswith(".cn") != in_china:
        domain = "amazonaws.com.cn" if in_china else "amazonaws.com"
        message = f"there is no registry {registry}: that region's domain is {domain}"
        remedy = f"Write it with {domain}."
        yield problem(Code.WRONG_REGISTRY_DOMAIN, message, remedy, ("serving", "image_uri"))


def image_is_in_region(custom: Custom) -> Iterator[Problem]:
    """SageMaker pulls images from its own region alone.

    CreateModel: "Region of "IMAGE" does not match expected region of REGION. Cross region ECR image
    pulls are not allowed." (https://github.com/ed-donner/alex/issues/30 and
    https://github.com/aws/sagemaker-pytorch-inference-toolkit/pull/7, read 2026-11-22).
    """
    region, image_region = custom.environment.region, custom.ecr_region
    if image_region not in (region, None):
        yield problem(
            Code.IMAGE_NOT_IN_REGION,
            f"the image lies in {image_region} and the endpoint in {region}; SageMaker pulls no "
            "image across regions",
            f"Copy the image to {region}, for example with a replication rule of ECR, and name "
            f"that copy, in `environments.{custom.environment.name}.serving.image_uri` where "
            "environments lie in several regions.",
            ("serving", "image_uri"),
        )


def registry_is_reached(custom: Custom) -> Iterator[Problem]:
    """SageMaker pulls from ECR by itself, and from other registries through the endpoint's VPC.

    https://docs.aws.amazon.com/sagemaker/latest/dg/your-algorithms-containers-inference-private.html
    (2026-11-29). SageMaker asks for credentials at `lambda.REGION.amazonaws.com` of the endpoint.
    """
    registry, given = custom.serving.image_uri.partition("/")[0], custom.serving.private_registry
    arn, field = given.credentials_function_arn if given else None, "private_registry"
    found: dict[FieldPath, tuple[str, str]] = {}
    if given is None and custom.ecr_region is None:
        found["image_uri",] = (
            f"{registry} is no registry of ECR: SageMaker reaches it through a VPC alone",
            "Copy the image to ECR, or add `private_registry: {}` and a network.",
        )
    elif given is not None and custom.ecr_region is not None:
        found[field,] = (
            f"{registry} is ECR, from which SageMaker pulls by itself",
            "Remove `private_registry`.",
        )
    elif given is not None and vpc_plan(custom.config, custom.environment) is None:
        found[field,] = (
            f"SageMaker reaches {registry} through a VPC, and the endpoint has none",
            "Add `endpoint.vpc`, or a `network` to the environment.",
        )
    if arn is not None and (region := arn.split(":")[3]) != custom.region:
        found[field, "credentials_function_arn"] = (
            f"the function is in {region}, and the endpoint in {custom.region}",
            f"Name a function of {custom.region}.",
        )
    for path, (message, remedy) in found.items():
        yield problem(Code.PRIVATE_REGISTRY, message, remedy, ("serving", *path))


def image_compiles_itself(custom: Custom) -> Iterator[Problem]:
    """Slipway does not know how another's container compiles."""
    if custom.config.artifacts.compile is not None:
        message = "Slipway cannot compile for a container of your own"
        remedy = "Remove `compile`: the weights are published as they are."
        yield problem(Code.CUSTOM_COMPILE, message, remedy, ("artifacts", "compile"))


def aws_image_fits_hardware(custom: Custom) -> Iterator[Problem]:
    """SageMaker takes AWS's image for one chip on any other, where its container then fails."""
    facts = custom.aws_neuron_image
    if facts is None:
        return
    right = [item for item, wanted in neuron_frameworks(custom) if wanted == facts.accelerator]
    for item in custom.placements:
        if item not in right and item.instance.accelerator_known:
            yield problem(
                Code.NEURON_FRAMEWORK,
                f"AWS's image {facts.repository} is for {FAMILIES_OF[facts.accelerator]}; "
                f"{item.instance.name} has {devices(item.instance)}",
                f"Choose {AN_INSTANCE_OF[facts.accelerator]}, or another image.",
                item.field,
            )


def driver_runs_the_sdk(custom: Custom) -> Iterator[Problem]:
    """A Neuron runtime may refuse an older driver, and the driver is the host's."""
    host, sdk = neuron_inference_ami(), custom.aws_neuron_sdk
    need = neuron_driver_need(sdk) if sdk else None
    if host.neuron_driver is None or need is None or need.oldest_driver is None:
        return
    driver, least = (
        tuple(map(int, each.split("."))) for each in (host.neuron_driver, need.oldest_driver)
    )
    if driver >= least:
        return
    yield problem(
        Code.NEURON_DRIVER,
        f"AWS's image has Neuron SDK {sdk}, whose runtime {need.runtime_library} needs Neuron "
        f"driver {need.oldest_driver}; the newest host image, {host.name}, has "
        f"{host.neuron_driver}",
        "Choose an image of an older SDK, 2.29.1 for example.",
        ("serving", "image_uri"),
    )
