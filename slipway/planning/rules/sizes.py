"""Rules about sizes: weights against an accelerator's memory, files against the disk."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.config.sections.serving import (
    CustomServing,
    LmiServing,
    NeuronServing,
    TensorRTServing,
    TritonServing,
)
from slipway.errors import Problem
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.memory import estimate
from slipway.planning.neuron import PIPELINE_GENERATION, place
from slipway.planning.rules.situation import Situation, problem
from slipway.planning.sizes import (
    DEFAULT_VOLUME_GB,
    LARGEST_VOLUME_GB,
    advised_volume_gb,
    artifact_size_gb,
    disk_gb,
)

# bf16 came with NVIDIA's Ampere.
_BF16_SINCE = 80


def weights_fit_accelerator(situation: Situation) -> Iterator[Problem]:
    """Weights that are larger than the accelerators' memory cannot be loaded, whatever the rest."""
    config = situation.config
    for placement in situation.placements:
        memory = estimate(config, placement.instance)
        if memory is None or memory.weights_gib <= memory.available_gib:
            continue
        count, spread = memory.copies_per_accelerator, memory.accelerators_per_copy
        copies = f"{count} copies of " if count > 1 else ""
        takes, each = f"{memory.weights_gib:.1f} GiB", ""
        if spread > 1:
            each = f"{spread} x "
            takes = f"{memory.copy_weights_gib:.1f} GiB"
            takes += f", {memory.weights_gib:.1f} on each of {spread}"
        ways = _ways_out(config, placement.instance)
        yield problem(
            Code.WEIGHTS_TOO_LARGE,
            f"{copies}{config.model.parameters:,} weights in {memory.dtype} take {takes}; "
            f"{placement.instance.name} has {each}{memory.room}",
            _sentence(ways) if ways else "Use a smaller model: no instance type has the memory.",
            placement.field,
        )


def _sentence(ways: list[str]) -> str:
    text = ", or ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def _ways_out(config: ModelConfig, instance: InstanceFacts) -> list[str]:
    """Returns what would make the weights fit, each by itself."""
    serving = config.serving
    settings = _other_settings(config, instance)
    first = next((way for way, changed in settings if _fits(changed, instance)), None)
    ways = [] if first is None else [first]
    smaller = _smaller_dtype(config, instance)
    if smaller and _fits(_with(config, {"dtype": smaller}), instance):
        ways.append(f"set `dtype: {smaller}`")
    stays = bool(ways)
    others = [other for other in instance_types().values() if _comparable(config, instance, other)]
    if any(_fits(config, other) for other in others):
        what = "accelerators have" if isinstance(serving, (CustomServing, LmiServing)) else "{} has"
        what = what.format("device" if isinstance(serving, NeuronServing) else "GPU")
        ways.append(f"choose an instance type whose {what} more memory")
    if isinstance(serving, LmiServing) and not stays:
        both = (
            _fits(_with(config, {"tensor_parallel_degree": degree}), other)
            for other in others
            for degree in _degrees(config, serving, other)
        )
        if any(both):
            ways.append("take a type with more accelerators and raise `tensor_parallel_degree`")
    return ways


def _other_settings(
    config: ModelConfig, instance: InstanceFacts
) -> Iterator[tuple[str, ModelConfig]]:
    """Yields changes of one number, the least first, with the config that each makes."""
    serving = config.serving
    verb, name = "lower", ""
    numbers: Iterable[int] = ()
    if isinstance(serving, LmiServing):
        name, verb = "tensor_parallel_degree", "raise"
        numbers = _degrees(config, serving, instance)
    elif isinstance(serving, TritonServing):
        name, numbers = "instance_group_count", range(serving.instance_group_count - 1, 0, -1)
    elif isinstance(serving, NeuronServing):
        placement = place(config, instance)
        if placement is None:
            return
        name, numbers = "workers", range(placement.workers - 1, 0, -1)
        if placement.pipeline_cores > 1:
            verb, name = "raise", "pipeline_cores"
            most = placement.cores // (serving.workers or 1)
            numbers = range(placement.pipeline_cores + 1, most + 1)
    for number in numbers:
        yield f"{verb} `{name}` to {number}", _with(config, {name: number})


def _degrees(config: ModelConfig, serving: LmiServing, instance: InstanceFacts) -> Iterator[int]:
    """Yields higher tensor parallel degrees that the instance has and the heads divide into."""
    accelerator = instance.accelerator
    if accelerator is None:
        return
    # On Neuron devices a degree counts cores.
    parts = accelerator.neuron_cores or accelerator.count
    most = parts // serving.pipeline_parallel_degree
    heads = config.model.attention_heads
    for degree in range(serving.tensor_parallel_degree + 1, most + 1):
        # No accelerator is left over.
        if most % degree == 0 and (heads is None or heads % degree == 0):
            yield degree


def _smaller_dtype(config: ModelConfig, instance: InstanceFacts) -> str | None:
    """Returns a precision of two bytes that the container and the accelerator have.

    One byte is not suggested: which checkpoints and engines can be quantised so is not known here.
    """
    serving, accelerator = config.serving, instance.accelerator
    if serving.dtype != "fp32" or accelerator is None:
        return None
    if isinstance(serving, (TensorRTServing, TritonServing)):
        return "fp16"
    if isinstance(serving, NeuronServing):
        return "bf16"
    # T5 in fp16 answers degraded text (facts: lmi).
    if config.model.family != "t5":
        return "fp16"
    capability = accelerator.compute_capability
    if capability is None or int(capability.removeprefix("sm")) >= _BF16_SINCE:
        return "bf16"
    return None


def _with(config: ModelConfig, changes: Mapping[str, Any]) -> ModelConfig:
    return config.model_copy(update={"serving": config.serving.model_copy(update=changes)})


def _fits(config: ModelConfig, instance: InstanceFacts) -> bool:
    memory = estimate(config, instance)
    return memory is not None and memory.weights_gib <= memory.available_gib


def _comparable(config: ModelConfig, instance: InstanceFacts, other: InstanceFacts) -> bool:
    """Whether the container that runs on one type might run on the other."""
    one, two = instance.accelerator, other.accelerator
    if one is None or two is None or other.architecture != instance.architecture:
        return False
    old, new = (each.neuron_generation == PIPELINE_GENERATION for each in (one, two))
    if one.kind != two.kind or one.is_nvidia_gpu != two.is_nvidia_gpu or old != new:
        return False
    serving = config.serving
    if not isinstance(serving, LmiServing):
        return True
    parts = serving.tensor_parallel_degree * serving.pipeline_parallel_degree
    return parts <= (two.neuron_cores or two.count)


def artifact_fits_disk(situation: Situation) -> Iterator[Problem]:
    """SageMaker would fill the disk for minutes before it says so."""
    endpoint = situation.config.endpoint
    size = artifact_size_gb(situation.config, situation.environment)
    if size is None:
        return
    for placement in situation.placements:
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


RULES = (weights_fit_accelerator, artifact_fits_disk)
