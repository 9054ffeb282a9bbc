"""Hosting instance types: processor, accelerator and disk of each."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True)
class InstanceFacts:
    """One instance type.

    Args:
        name: SageMaker's name, for example `ml.g4dn.xlarge`.
        vcpus: virtual processors.
        memory_gib: main memory in GiB.
        accelerator: product name of the GPU.
        accelerator_count: GPUs in one instance.
        accelerator_memory_gib: memory of one GPU in GiB.
        compute_capability: the GPUs' architecture, for example `sm75`; a TensorRT engine fits one.
        local_nvme_gb: local disk in GB, or 0 where storage is an EBS volume.
    """

    name: str
    vcpus: int
    memory_gib: int
    accelerator: str
    accelerator_count: int
    accelerator_memory_gib: int
    compute_capability: str
    local_nvme_gb: int


@functools.cache
def instance_types() -> Mapping[str, InstanceFacts]:
    """Returns every known instance type by its name."""
    table = json.loads(resources.files(__package__).joinpath("instances.json").read_text("utf-8"))
    families = table["accelerators"]
    return MappingProxyType(
        {
            name: InstanceFacts(name=name, **families[name.split(".")[1]], **row)
            for name, row in table["instances"].items()
        }
    )
