"""The parts of a first config that the containers of encoders share."""

import itertools
from collections.abc import Mapping, Sequence

FAMILIES = ("bert", "distilbert", "roberta", "xlm_roberta")
# What the name of a checkpoint's class ends with: its head. `BertModel` has none.
_TASK_OF_HEAD: Mapping[str, str] = {
    "ForQuestionAnswering": "question-answering",
    "ForSequenceClassification": "sequence-classification",
    "ForTokenClassification": "token-classification",
    "Model": "embeddings",
}
TASKS = tuple(_TASK_OF_HEAD.values())


def from_architectures(architectures: Sequence[str]) -> dict[str, str]:
    """Returns the task of a checkpoint's classes, as an answer of a first config."""
    pairs = itertools.product(architectures, _TASK_OF_HEAD.items())
    tasks = [task for name, (head, task) in pairs if name.endswith(head)]
    return {"task": tasks[0]} if tasks else {}
