"""How many copies of inference components fit on instances. Pure functions.

A copy gets a part of one instance: CPU cores, accelerators and memory, as its
ComputeResourceRequirements say. The sizes of instances are EC2's, in moto's recording. AWS keeps a
part of the memory for itself. Its size is not documented, so all of it is available here.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moto.ec2.models.instance_types import INSTANCE_TYPES

# https://github.com/huggingface/skills, hf-cloud-sagemaker (read 2026-11-24) quotes it.
TOO_SMALL = (
    "There is not enough hardware resources on the instances for this endpoint to create a copy of "
    "the inference component."
)


@dataclass(frozen=True)
class Size:
    """Resources of an instance, or of a copy.

    Attributes:
        cores: CPU cores.
        accelerators: GPUs or Neuron devices.
        memory_mb: memory of the host in MB.
    """

    cores: float
    accelerators: float
    memory_mb: float

    def holds(self, part: "Size") -> bool:
        """Returns whether a part fits."""
        return (
            part.cores <= self.cores
            and part.accelerators <= self.accelerators
            and part.memory_mb <= self.memory_mb
        )

    def without(self, part: "Size") -> "Size":
        """Returns the rest."""
        return Size(
            self.cores - part.cores,
            self.accelerators - part.accelerators,
            self.memory_mb - part.memory_mb,
        )


def size_of_instance(instance_type: str) -> Size | None:
    """Returns the resources of an instance type; None if EC2's recording lacks the type."""
    facts = INSTANCE_TYPES.get(instance_type.removeprefix("ml."))
    if facts is None:
        return None
    devices = [
        *((facts.get("GpuInfo") or {}).get("Gpus") or ()),
        *((facts.get("NeuronInfo") or {}).get("NeuronDevices") or ()),
    ]
    return Size(
        float(facts["VCpuInfo"]["DefaultVCpus"]),
        float(sum(device["Count"] for device in devices)),
        float(facts["MemoryInfo"]["SizeInMiB"]),
    )


def size_of_copy(requirements: Mapping[str, Any]) -> Size:
    """Returns the resources that one copy reserves."""
    return Size(
        float(requirements.get("NumberOfCpuCoresRequired", 0)),
        float(requirements.get("NumberOfAcceleratorDevicesRequired", 0)),
        float(requirements["MinMemoryRequiredInMb"]),
    )


def instances_for(instance: Size | None, copies: Iterable[Size]) -> int | None:
    """Returns the number of instances that hold all copies, filled one after the other.

    Args:
        instance: of one instance; None if it is unknown, so that one holds any number of copies.
        copies: the copies; the largest are placed first.

    Returns:
        None if a copy is larger than an instance.
    """
    ordered = sorted(
        copies, key=lambda copy: (copy.accelerators, copy.memory_mb, copy.cores), reverse=True
    )
    if instance is None:
        return min(len(ordered), 1)
    free: list[Size] = []
    for copy in ordered:
        if not instance.holds(copy):
            return None
        index = next((i for i, rest in enumerate(free) if rest.holds(copy)), None)
        if index is None:
            free.append(instance.without(copy))
        else:
            free[index] = free[index].without(copy)
    return len(free)


def copies_that_fit(
    instance: Size | None, taken: Sequence[Size], wanted: Sequence[Size], most_instances: int
) -> int:
    """Returns how many of the wanted copies fit beside those that are there.

    Args:
        instance: of one instance; None if it is unknown.
        taken: the copies that are there.
        wanted: further copies, in the order in which they are placed.
        most_instances: the instances that there may be.
    """
    for count in range(len(wanted), 0, -1):
        needed = instances_for(instance, [*taken, *wanted[:count]])
        if needed is not None and needed <= most_instances:
            return count
    return 0
