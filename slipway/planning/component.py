"""An inference component: the copies of a model, on instances that come and go with them.

Sources, read 2026-11-24:

- How an endpoint scales to zero and wakes:
  https://docs.aws.amazon.com/sagemaker/latest/dg/endpoint-auto-scaling-zero-instances.html
- A component cannot be created with 0 copies, although the API documents 0 as the minimum:
  https://github.com/stdapi-ai/stdapi.ai/issues/43 (2026-08). So it starts with one copy.
- The memory of a copy is a reservation. On ml.g5.xlarge, 1024 MB were accepted and 4096 MB refused:
  https://github.com/huggingface/skills, hf-cloud-sagemaker.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slipway.config.sections.endpoint import Endpoint
from slipway.config.sections.scale_to_zero import ScaleToZero
from slipway.facts.instances import InstanceFacts

SCALE_TO_ZERO = "scale_to_zero"
"""The mode of an endpoint whose model is an inference component."""

WAKE_METRIC: Final = "NoCapacityInvocationFailures"
"""Counts the requests that found no copy."""

COPY_TARGETS: Mapping[str, str] = {
    "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (
        "target_concurrent_requests_per_copy"
    ),
    "SageMakerInferenceComponentInvocationsPerCopy": "target_invocations_per_copy_per_minute",
}
"""By the predefined metric of target tracking, the field of `endpoint.scale_to_zero` to hold."""

_MIB_PER_GIB = 1024
_VCPU_SHARE = 0.75


@dataclass(frozen=True)
class ComponentPlan:
    """The copies of a model that scales to zero.

    `name` is the InferenceComponentName, which requests name beside the endpoint. The smallest type
    of a pool decides how many copies fit on one instance. None of the shares is reserved where it
    is None.
    """

    name: str
    settings: ScaleToZero
    copies_per_instance: int
    accelerators_per_copy: int | None
    vcpus_per_copy: float | None

    @property
    def max_instance_count(self) -> int:
        """Returns the number of instances that hold the most copies at any time."""
        return math.ceil(self.settings.largest_count / self.copies_per_instance)

    @property
    def min_instance_count(self) -> int:
        """Returns the instances that run at any time, with or without copies."""
        held = math.ceil(self.settings.smallest_count / self.copies_per_instance)
        return max(self.settings.min_instance_count, held)

    @property
    def sleeps(self) -> bool:
        """Returns whether there may be no copy, so that a request has to wake the endpoint."""
        return self.settings.smallest_count == 0

    @property
    def log_group_name(self) -> str:
        """Returns the log group of the copies, to which SageMaker gives the component's name."""
        return f"/aws/sagemaker/InferenceComponents/{self.name}"


def component_plan(
    endpoint: Endpoint, instances: Sequence[InstanceFacts], name: str
) -> ComponentPlan | None:
    """Returns the plan of an endpoint's inference component; None in another mode.

    The preferred type is the first of `instances`; a copy's share is the same on each. The
    component has the endpoint's name.
    """
    section = endpoint.copies
    if section is None:
        return None
    accelerators, vcpus = share_of_copy(section, instances[0])
    return ComponentPlan(
        name,
        section,
        min(
            _copies_per_instance(instance, accelerators, vcpus, section.copy_memory_mib)
            for instance in instances
        ),
        accelerators,
        vcpus,
    )


def share_of_copy(section: ScaleToZero, instance: InstanceFacts) -> tuple[int | None, float | None]:
    """Returns the accelerators and the processors that a copy reserves; None for none."""
    accelerators = section.accelerators_per_copy or accelerators_of(instance) or None
    vcpus = section.vcpus_per_copy
    if vcpus is None and accelerators is None and instance.vcpus is not None:
        vcpus = _VCPU_SHARE * instance.vcpus
    return accelerators, vcpus


def accelerators_of(instance: InstanceFacts) -> int:
    """Returns the accelerators of an instance type; 0 without any."""
    return instance.accelerator.count if instance.accelerator else 0


def memory_mib_of(instance: InstanceFacts) -> float | None:
    return None if instance.memory_gib is None else instance.memory_gib * _MIB_PER_GIB


def _copies_per_instance(
    instance: InstanceFacts, accelerators: int | None, vcpus: float | None, memory_mib: int
) -> int:
    """Returns how many copies fit, by the scarcest resource; 1 at least."""
    fitting: list[float] = []
    if accelerators is not None and accelerators_of(instance):
        fitting.append(accelerators_of(instance) / accelerators)
    if vcpus is not None and instance.vcpus is not None:
        fitting.append(instance.vcpus / vcpus)
    memory = memory_mib_of(instance)
    if memory is not None:
        fitting.append(memory / memory_mib)
    return max(1, math.floor(min(fitting, default=1)))
