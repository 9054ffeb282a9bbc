"""A first config of the LMI container."""

import typing
from typing import Any

from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator, architecture
from slipway.facts.lmi.versions import usable_versions

FRAMEWORKS: tuple[str, ...] = typing.get_args(LmiServing.model_fields["framework"].annotation)
# The one that AWS still develops.
_DEFAULT_FRAMEWORK = "djl-lmi"
# bf16 came with NVIDIA's Ampere.
_FIRST_WITH_BF16 = "sm80"


def _serving(answers: Answers, accelerator: Accelerator | None) -> dict[str, Any]:
    framework = answers.own.get("framework") or _DEFAULT_FRAMEWORK
    serving: dict[str, Any] = {
        "framework": framework,
        "version": usable_versions(framework, accelerator)[-1],
        # One copy over the whole instance: what fits at all fits so.
        "tensor_parallel_degree": _devices(accelerator),
        "dtype": _dtype(answers.family, accelerator),
    }
    if framework == _DEFAULT_FRAMEWORK:
        # Its own handler batches continuously; in the other images that depends on the model.
        serving["max_rolling_batch_size"] = 16
    return {**serving, "max_input_tokens": 1024, "max_new_tokens": 256}


def _devices(accelerator: Accelerator | None) -> int:
    return (accelerator.neuron_cores or accelerator.count) if accelerator else 1


def _dtype(family: str, accelerator: Accelerator | None) -> str:
    capability = accelerator.compute_capability if accelerator else None
    if capability is None or architecture(capability) >= architecture(_FIRST_WITH_BF16):
        return "bf16"
    # T5 in fp16 answers degraded text (facts: lmi).
    return "fp32" if family == "t5" else "fp16"


STARTER = Starter(
    _serving,
    endpoint={
        "container_startup_health_check_timeout_seconds": 1800,
        "network_isolation": False,
    },
    notes={
        "network_isolation": "The container copies the weights from S3 itself.",
        "container_startup_health_check_timeout_seconds": (
            "The weights are copied and loaded within it."
        ),
    },
    options=("framework",),
    choices={"framework": FRAMEWORKS},
)
