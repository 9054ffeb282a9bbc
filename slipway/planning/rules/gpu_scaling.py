"""Rules about autoscaling by the use of the GPUs.

The metric adds up over an instance's GPUs, and has no dimension that names the type:
https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html, read 2026-11-22.
"""

import math
from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME
from slipway.errors import Problem
from slipway.facts.instances import InstanceFacts
from slipway.planning.deployment import Deployment, problem
from slipway.planning.plan import counted

_FIELD = ("autoscaling", "target_gpu_utilization_percent")
_BY_REQUESTS = "Scale by `target_concurrent_requests_per_instance`"


def gpu_target_needs_gpus(deployment: Deployment) -> Iterator[Problem]:
    """A type without a GPU has no such metric, so its fleet would never grow."""
    if _target(deployment) is None:
        return
    preferred: dict[str, InstanceFacts] = {}
    for placement in deployment.every_placement:
        # A shadow variant has a fixed count.
        if placement.variant == SHADOW_VARIANT_NAME:
            continue
        instance = placement.instance
        first = preferred.setdefault(placement.variant, instance)
        if not instance.gpu_count:
            reason = "has no GPU" if instance.accelerator_known else "has an unknown number of GPUs"
            yield problem(
                Code.SCALING_GPU,
                f"{instance.name} {reason}, and autoscaling would follow the use of its GPUs",
                f"{_BY_REQUESTS}, or use types with GPUs.",
                _FIELD,
            )
        elif first.gpu_count and instance.gpu_count != first.gpu_count:
            yield problem(
                Code.SCALING_GPU,
                f"{instance.name} has {counted(instance.gpu_count, 'GPU')} and {first.name} has "
                f"{counted(first.gpu_count, 'GPU')}; the metric `GPUUtilization` adds up over the "
                "GPUs of an instance, so no one target is right for both",
                f"{_BY_REQUESTS}, or use types with the same number of GPUs.",
                placement.field,
            )


def gpu_steps_can_be_reached(deployment: Deployment) -> Iterator[Problem]:
    """GPUs that are busy all the time are at 100 %."""
    scaling, target = deployment.config.autoscaling, _target(deployment)
    if scaling is None or target is None:
        return
    for index, step in enumerate(scaling.steps):
        value = step.from_times_target * target
        if value > 100:
            yield problem(
                Code.SCALING_STEPS,
                f"the step begins at {value:g} % use of the GPUs, which is never reached",
                f"Use {math.floor(10_000 / target) / 100:g} times the target at most, or lower the "
                "target.",
                ("autoscaling", "steps", index, "from_times_target"),
            )


def _target(deployment: Deployment) -> float | None:
    scaling = deployment.config.autoscaling
    return scaling.target_gpu_utilization_percent if scaling else None
