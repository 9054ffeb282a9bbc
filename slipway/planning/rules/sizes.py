"""Rules about sizes: weights against an accelerator's memory, files against the disk."""

import math
from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.errors import Problem
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.deployment import Deployment, problem
from slipway.planning.memory import estimate
from slipway.planning.quantization import precision_of_two_bytes
from slipway.planning.sizes import (
    DEFAULT_VOLUME_GB,
    LARGEST_VOLUME_GB,
    advised_volume_gb,
    artifact_size_gb,
    disk_gb,
)


def weights_fit_accelerator(deployment: Deployment) -> Iterator[Problem]:
    """Weights that are larger than the accelerators' memory cannot be loaded, whatever the rest."""
    config = deployment.config
    for placement in deployment.placements:
        memory = estimate(deployment, placement.instance)
        if memory is None or memory.weights_gib <= memory.available_gib:
            continue
        count, spread = memory.copies_per_accelerator, memory.accelerators_per_copy
        copies = f"{count} copies of " if count > 1 else ""
        takes, each = f"{memory.weights_gib:.1f} GiB", ""
        if spread > 1:
            each = f"{spread} x "
            takes = f"{memory.copy_weights_gib:.1f} GiB"
            takes += f", {memory.weights_gib:.1f} on each of {spread}"
        ways = ", or ".join(_ways_out(deployment, placement.instance))
        yield problem(
            Code.WEIGHTS_TOO_LARGE,
            f"{copies}{config.model.parameters:,} weights in {memory.dtype} take {takes}; "
            f"{placement.instance.name} has {each}{memory.room}",
            f"{ways[0].upper()}{ways[1:]}."
            if ways
            else "Use a smaller model: no instance type has the memory.",
            placement.field,
        )


def _ways_out(deployment: Deployment, instance: InstanceFacts) -> list[str]:
    """Returns what would make the weights fit, each by itself."""
    accelerator = instance.accelerator
    if accelerator is None:
        return []
    settings = deployment.other_settings(instance)
    first = next((way for way, changed in settings if _fits(changed, instance)), None)
    ways = [] if first is None else [first]
    smaller = None
    if deployment.dtype == "fp32":
        # One byte is not suggested: it is not known here which checkpoints can be quantised so.
        smaller = deployment.two_bytes or precision_of_two_bytes(deployment, accelerator)
    if smaller and _fits(deployment.with_serving(dtype=smaller), instance):
        ways.append(f"set `dtype: {smaller}`")
    others = [each for each in instance_types().values() if _comparable(deployment, instance, each)]
    both = None if ways else deployment.suggest_type_and_setting(others, _fits)
    if any(_fits(deployment, other) for other in others):
        ways.append(f"choose an instance type whose {deployment.accelerator_noun} more memory")
    return [*ways, both] if both else ways


def _fits(deployment: Deployment, instance: InstanceFacts) -> bool:
    memory = estimate(deployment, instance)
    return memory is not None and memory.weights_gib <= memory.available_gib


def _comparable(deployment: Deployment, instance: InstanceFacts, other: InstanceFacts) -> bool:
    """Whether the container that runs on one type might run on the other."""
    one, two = instance.accelerator, other.accelerator
    if one is None or two is None or other.architecture != instance.architecture:
        return False
    alike = one.kind == two.kind and one.is_nvidia_gpu == two.is_nvidia_gpu
    same_runtime = one.has_core_pipeline == two.has_core_pipeline
    return alike and same_runtime and deployment.may_be_spread_over(two)


def artifact_fits_disk(deployment: Deployment) -> Iterator[Problem]:
    """SageMaker would fill the disk for minutes before it says so."""
    endpoint = deployment.config.endpoint
    size = artifact_size_gb(deployment)
    if size is None:
        return
    for placement in deployment.placements:
        instance, disk = placement.instance, disk_gb(endpoint, placement.instance)
        if disk is None or size <= disk:
            continue
        if instance.local_nvme_gb:
            yield problem(
                Code.DISK_TOO_SMALL,
                f"the artifact of {size:g} GB does not fit on the local NVMe disk of "
                f"{instance.name}, which has {disk} GB",
                _larger_disk(instance, size),
                placement.field,
            )
            continue
        given = endpoint.volume_size_gb is not None
        default = "" if given else f": SageMaker's default is {DEFAULT_VOLUME_GB}"
        yield problem(
            Code.DISK_TOO_SMALL,
            f"the artifact of {size:g} GB does not fit on the volume of {instance.name}, which has "
            f"{disk} GB{default}",
            f"Set `volume_size_gb: {advised_volume_gb(size)}`."
            if size <= LARGEST_VOLUME_GB
            else f"Choose an instance type with a local NVMe disk of {math.ceil(size)} GB or more: "
            f"a volume has {LARGEST_VOLUME_GB} GB at most.",
            ("endpoint", "volume_size_gb") if given else placement.field,
        )


def _larger_disk(instance: InstanceFacts, size_gb: float) -> str:
    """Names a type of the same family, which has the same accelerator, where one has the disk."""
    family = instance.name.rpartition(".")[0] + "."
    fitting = [
        other
        for other in instance_types().values()
        if other.name.startswith(family) and (other.local_nvme_gb or 0) >= size_gb
    ]
    remedy = "Choose an instance type with a larger local disk"
    if not fitting:
        return f"{remedy}."
    smallest = min(fitting, key=lambda other: (other.local_nvme_gb or 0, other.vcpus or 0))
    return f"{remedy}, for example `{smallest.name}` with {smallest.local_nvme_gb} GB."
