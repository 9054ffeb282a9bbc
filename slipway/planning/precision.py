"""Precisions of two bytes: which of them an accelerator has, and which suits a model."""

from slipway.facts.instances import Accelerator
from slipway.planning.deployment import Deployment

# The compute capability that brought bf16.
_BF16_SINCE = 80


def precision_of_two_bytes(deployment: Deployment, accelerator: Accelerator) -> str | None:
    """Returns a precision of two bytes in which any server answers well, or None.

    Args:
        deployment: names the model; T5 in fp16 answers degraded text (facts: lmi).
        accelerator: bf16 came with NVIDIA's Ampere.
    """
    if deployment.config.model.family != "t5":
        return "fp16"
    return "bf16" if has_bf16(accelerator) else None


def has_bf16(accelerator: Accelerator) -> bool:
    """Returns whether an accelerator has bf16, which came with NVIDIA's Ampere."""
    capability = accelerator.compute_capability
    return capability is None or int(capability.removeprefix("sm")) >= _BF16_SINCE
