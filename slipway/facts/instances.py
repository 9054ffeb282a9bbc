"""Hosting instance types: processor, memory, accelerator and disk of each.

`python -m tools.refresh_facts.instances` writes the table and names its sources.
"""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from slipway.facts.tables import UNKNOWN, known, read_table


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The accelerators of an instance type; all of one type are alike.

    Args:
        product: maker and product, for example `NVIDIA A10G`.
        count: GPUs or devices in one instance.
        memory_gib: memory of one in GiB, as EC2 reports it; None where no source says.
        compute_capability: of an NVIDIA GPU, for example `sm86`; a TensorRT engine fits one. None
            for everything else, and where no source says.
        neuron_generation: of a Neuron device, for example `NeuronCore-v2`; else None.
    """

    kind: Literal["gpu", "neuron", "other"]
    product: str
    count: int
    memory_gib: float | None = None
    compute_capability: str | None = None
    neuron_generation: str | None = None
    neuron_cores_per_device: int | None = None

    @property
    def is_nvidia_gpu(self) -> bool:
        """Returns whether CUDA and TensorRT run on it."""
        return self.kind == "gpu" and self.product.startswith("NVIDIA ")

    @property
    def has_core_pipeline(self) -> bool:
        """Returns whether a model can be spread over its NeuronCores: on Inferentia 1 alone.

        Later generations have another runtime, other images and no pipeline.
        """
        return self.neuron_generation == "NeuronCore-v1"

    @property
    def neuron_cores(self) -> int | None:
        per_device = self.neuron_cores_per_device
        return None if per_device is None else per_device * self.count


@dataclass(frozen=True, slots=True)
class InstanceFacts:
    """One instance type. None always means that no source says.

    Args:
        accelerator: its GPUs or Neuron devices. None where it has none, and where no source says:
            `accelerator_known` tells which.
        local_nvme_gb: local disk in GB, or 0 where storage is an EBS volume, whose size may be set.
    """

    name: str
    vcpus: int | None
    memory_gib: float | None
    architecture: str | None
    accelerator: Accelerator | None
    accelerator_known: bool
    local_nvme_gb: int | None

    @property
    def compute_capability(self) -> str | None:
        """Returns its GPUs' compute capability, such as `sm75`; None without one, or if unknown."""
        return self.accelerator.compute_capability if self.accelerator else None

    @property
    def neuron_generation(self) -> str | None:
        """Returns the generation of its NeuronCores, for example `NeuronCore-v2`, or None."""
        return self.accelerator.neuron_generation if self.accelerator else None

    @property
    def gpu_count(self) -> int:
        """Returns the number of its GPUs; 0 without any, and if no source says."""
        return self.accelerator.count if self.accelerator and self.accelerator.kind == "gpu" else 0

    @property
    def accelerator_title(self) -> str:
        """Returns the name of its GPU or Neuron device for messages."""
        if self.accelerator is None:
            return "no GPU"
        capability, product = self.compute_capability, self.accelerator.product
        return f"{product} ({capability})" if capability else product


def instance_facts(name: str, row: Mapping[str, Any]) -> InstanceFacts:
    """Returns an instance type's facts from its row in the table."""
    accelerator = row["accelerator"]
    return InstanceFacts(
        name,
        known(row["vcpus"]),
        known(row["memory_gib"]),
        known(row["architecture"]),
        Accelerator(**{key: known(cell) for key, cell in accelerator.items()})
        if isinstance(accelerator, dict)
        else None,
        accelerator != UNKNOWN,
        known(row["local_nvme_gb"]),
    )


@functools.cache
def instance_types() -> Mapping[str, InstanceFacts]:
    """Returns every instance type that hosting accepts, by its name."""
    rows = read_table("instances.json")["instances"]
    return MappingProxyType({name: instance_facts(name, row) for name, row in rows.items()})


def architecture(compute_capability: str) -> int:
    """Returns the number in `sm86` or `sm100`: a later architecture has a higher one."""
    return int(compute_capability.removeprefix("sm"))
