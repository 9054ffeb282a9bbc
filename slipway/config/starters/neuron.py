"""A first config of the Neuron container."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from slipway.config.starters.starter import Answers, Starter
from slipway.facts.instances import Accelerator

_COMPILE_INSTANCE = "ml.c5.4xlarge"
_FAMILIES = ("bert", "distilbert", "roberta", "xlm_roberta")
# What the name of a checkpoint's class ends with: its head. `BertModel` has none.
_TASK_OF_HEAD: Mapping[str, str] = {
    "ForQuestionAnswering": "question-answering",
    "ForSequenceClassification": "sequence-classification",
    "ForTokenClassification": "token-classification",
    "Model": "embeddings",
}


def _serving(answers: Answers, _: Accelerator | None) -> dict[str, Any]:
    first_generation = answers.instance.startswith("ml.inf1.")
    return {
        "framework": "neuron" if first_generation else "neuronx",
        "task": answers.own["task"],
        "objective": "throughput",
        "sequence_length": 128,
        "batch_size": 6 if first_generation else 8,
    }


def _from_architectures(architectures: Sequence[str]) -> dict[str, str]:
    pairs = itertools.product(architectures, _TASK_OF_HEAD.items())
    tasks = [task for name, (head, task) in pairs if name.endswith(head)]
    return {"task": tasks[0]} if tasks else {}


STARTER = Starter(
    _serving,
    compile_instance=lambda _: _COMPILE_INSTANCE,
    options=("task",),
    required=lambda _: ("task",),
    choices={"task": tuple(_TASK_OF_HEAD.values())},
    suits=_FAMILIES,
    from_architectures=_from_architectures,
)
