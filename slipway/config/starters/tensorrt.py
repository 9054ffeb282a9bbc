"""A first config of the TensorRT container."""

from typing import Any

from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator


def _serving(_: Answers, __: Accelerator | None) -> dict[str, Any]:
    return {
        "max_batch_size": 8,
        "max_input_tokens": 64,
        "max_new_tokens": 42,
        "default_new_tokens": 12,
    }


STARTER = Starter(
    _serving,
    compile_instance=lambda answers: answers.instance,
    is_tried_with_a_sample=True,
    suits=("gpt2",),
)
