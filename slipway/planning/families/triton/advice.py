"""Warnings about Triton for a reviewer. They stop nothing."""

from collections.abc import Iterator

from slipway.facts.triton.releases import advisories_since, reads_nested_json, triton_releases
from slipway.planning.families.triton.deployment import Triton
from slipway.planning.plan import PlanWarning


def advisories(triton: Triton) -> Iterator[PlanWarning]:
    """Warns of what NVIDIA published about a release after it."""
    version, newest = triton.serving.version, tuple(triton_releases())[-1]
    known = len(advisories_since(version))
    if known:
        remedy = (
            "AWS has no newer image. Let only trusted clients call the endpoint."
            if version >= newest
            else f"Of {newest} they are {len(advisories_since(newest))}. Choose a newer release "
            "where the GPU allows it."
        )
        yield PlanWarning(
            "triton-advisories",
            f"NVIDIA published {known} security advisories that concern Triton {version}. {remedy}",
        )


def nested_json(triton: Triton) -> Iterator[PlanWarning]:
    """Warns of AWS's own image, before which no guard of Slipway's stands."""
    version = triton.serving.version
    if triton.is_own and not reads_nested_json(version):
        yield PlanWarning(
            "triton-nested-json",
            f"One request of 200 KB of nested JSON ends Triton {version}, and AWS's image has no "
            "guard before it. Choose a newer release where the GPU allows it.",
        )


def idle_gpu(triton: Triton) -> Iterator[PlanWarning]:
    """Warns of a GPU that is paid for while Slipway's model computes on the processor."""
    if triton.is_own or triton.serving.backend != "onnxruntime":
        return
    for instance in triton.instances:
        if instance.accelerator is not None:
            yield PlanWarning(
                "triton-idle-gpu",
                f"`onnxruntime` computes on the processor, and the {instance.accelerator_title} of "
                f"{instance.name} stays idle. Choose `tensorrt`, or a type without a GPU.",
            )
