"""A first config of the Neuron container."""

from typing import Any

from slipway.config.starters.encoders import FAMILIES, TASKS, from_architectures
from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator

_COMPILE_INSTANCE = "ml.c5.4xlarge"


def _serving(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    first_generation = answers.instance.startswith("ml.inf1.")
    return {
        "framework": "neuron" if first_generation else "neuronx",
        "task": answers.own["task"],
        "objective": "throughput",
        "sequence_length": 128,
        "batch_size": 6 if first_generation else 8,
    }


STARTER = Starter(
    _serving,
    compile_instance=lambda _: _COMPILE_INSTANCE,
    options=("task",),
    required=lambda _: ("task",),
    choices={"task": TASKS},
    suits=FAMILIES,
    from_architectures=from_architectures,
)
