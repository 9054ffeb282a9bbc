"""Warnings about Triton for a reviewer. They stop nothing."""

from collections.abc import Iterator

from slipway.planning.families.triton.situation import Triton
from slipway.planning.plan import PlanWarning

_WITHOUT_TRAVERSAL = "26.03"


def path_traversal(triton: Triton) -> Iterator[PlanWarning]:
    """Warns of Triton releases before the fix that NVIDIA's release notes name.

    The fix is in the front end that SageMaker talks to.
    """
    version = triton.serving.version
    if version < _WITHOUT_TRAVERSAL:
        yield PlanWarning(
            "triton-path-traversal",
            f"Triton {version} lets a model's name lead out of its directory; {_WITHOUT_TRAVERSAL} "
            "fixed that. Choose a newer release where the GPU allows it.",
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


ADVICE = (path_traversal, idle_gpu)
