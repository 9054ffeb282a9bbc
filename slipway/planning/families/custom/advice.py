"""Warnings about images of the user's own. They stop nothing.

Most are about AWS's images for Inferentia and Trainium (facts: neuron).
"""

from collections.abc import Iterator

from slipway.facts.instances import InstanceFacts
from slipway.facts.neuron.drivers import neuron_driver_need, neuron_inference_ami
from slipway.planning.families.custom.deployment import Custom
from slipway.planning.plan import PlanWarning

# Servers that start a worker for each vCPU unless they are told otherwise.
_TORCHSERVE = "TorchServe"
_SERVERS = (_TORCHSERVE, "Multi Model Server")
_WORKERS = "SAGEMAKER_MODEL_SERVER_WORKERS"
_TORCHSERVE_PREFIX = "SAGEMAKER_TS_"
_TORCHSERVE_WORKERS = ("SAGEMAKER_TS_MIN_WORKERS", "SAGEMAKER_TS_MAX_WORKERS")


def tag_can_move(custom: Custom) -> Iterator[PlanWarning]:
    """Warns of an image that is named by its tag: each instance pulls what the tag means then."""
    image = custom.given_image
    if image.tag.startswith("sha256:"):
        return
    tells = (
        image.private_registry
        or f"`aws ecr describe-images --region {image.region} --registry-id {image.account} "
        f"--repository-name {image.repository} --image-ids imageTag={image.tag}`"
    )
    yield PlanWarning(
        "image-tag",
        f"The tag `{image.tag}` of `image_uri` can move, and then the next instance runs another "
        f"image: write {image.uri.removesuffix(f':{image.tag}')}@DIGEST. {tells} tells the digest.",
    )


def driver_may_be_too_old(custom: Custom) -> Iterator[PlanWarning]:
    """Warns of a runtime that, by AWS's notes, may not start on the host's driver."""
    host, sdk = neuron_inference_ami(), custom.aws_neuron_sdk
    need = neuron_driver_need(sdk) if sdk else None
    if need is not None and need.oldest_driver is None:
        yield PlanWarning(
            "neuron-driver",
            f"The image's Neuron SDK {sdk} may not start on {host.name}, whose Neuron driver is "
            f"{host.neuron_driver}: {need.reason}. SDK 2.29.1 is the newest without that doubt.",
        )


def group_sizes_have_no_effect(custom: Custom) -> Iterator[PlanWarning]:
    """Warns of the variable of the first runtime; the present runtime reads others."""
    environment = custom.serving.environment
    if "NEURONCORE_GROUP_SIZES" in environment and any(_neuron_types(custom)):
        yield PlanWarning(
            "neuroncore-group-sizes",
            "NEURONCORE_GROUP_SIZES has had no effect since Neuron SDK 1.20: use "
            "NEURON_RT_NUM_CORES, the cores of each process.",
        )


def workers_follow_processors(custom: Custom) -> Iterator[PlanWarning]:
    """Warns of AWS's servers that count vCPUs, of which most types have more than NeuronCores."""
    environment, server = custom.serving.environment, _aws_server(custom)
    if not server.startswith(_SERVERS) or _WORKERS in environment:
        return
    # Then it is one worker, which is the next function's.
    if server.startswith(_TORCHSERVE) and _torchserve_variables(environment):
        return
    for instance, cores in _neuron_types(custom):
        if instance.vcpus is not None and instance.vcpus > cores:
            yield PlanWarning(
                "neuron-workers-unset",
                f"Without {_WORKERS} the image starts a worker for each of the {instance.vcpus} "
                f"vCPUs of {instance.name}, and those beyond its {cores} NeuronCores fail: set it "
                f"to {cores} at most.",
            )


def torchserve_variables_leave_one_worker(custom: Custom) -> Iterator[PlanWarning]:
    """Warns of variables of TorchServe, with which its numbers of workers default to 1."""
    environment = custom.serving.environment
    given = _torchserve_variables(environment)
    missing = [name for name in _TORCHSERVE_WORKERS if name not in environment]
    if not given or not missing or not _aws_server(custom).startswith(_TORCHSERVE):
        return
    for instance, cores in _neuron_types(custom):
        yield PlanWarning(
            "torchserve-one-worker",
            f"{given[0]} is set, and so the default of {' and '.join(missing)} is 1: set "
            f"{'it' if len(missing) == 1 else 'them'} too, or most of the {cores} NeuronCores of "
            f"{instance.name} may stay idle.",
        )


def _aws_server(custom: Custom) -> str:
    return custom.aws_neuron_image.server if custom.aws_neuron_image else ""


def _torchserve_variables(environment: dict[str, str]) -> list[str]:
    return [name for name in environment if name.startswith(_TORCHSERVE_PREFIX)]


def _neuron_types(custom: Custom) -> Iterator[tuple[InstanceFacts, int]]:
    for instance in custom.instances:
        cores = instance.accelerator.neuron_cores if instance.accelerator else None
        if cores is not None:
            yield instance, cores
