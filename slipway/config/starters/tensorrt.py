"""A first config of the TensorRT container."""

from collections.abc import Sequence
from typing import Any

from slipway.config.starters.encoders import FAMILIES, TASKS, from_architectures
from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator


def _serving(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    if (task := answers.own.get("task")) is not None:
        return {"task": task, "sequence_length": 128, "batch_size": 8}
    return {
        "max_batch_size": 8,
        "max_input_tokens": 64,
        "max_new_tokens": 42,
        "default_new_tokens": 12,
    }


def _from_architectures(architectures: Sequence[str]) -> dict[str, str]:
    """Returns the task of an encoder's classes; GPT-2 has none."""
    return from_architectures([name for name in architectures if not name.startswith("GPT2")])


STARTER = Starter(
    _serving,
    compile_instance=lambda answers: answers.instance,
    options=("task",),
    required=lambda family: ("task",) if family in FAMILIES else (),
    choices={"task": TASKS},
    is_tried_with_a_sample=True,
    suits=("gpt2",),
    from_architectures=_from_architectures,
)
