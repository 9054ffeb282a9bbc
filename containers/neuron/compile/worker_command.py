"""The order that the program of a compile job passes to its worker. It keeps to Python 3.10."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from containers.neuron.compile.job import Hyperparameters


@dataclass(frozen=True)
class WorkerCommand(Hyperparameters):
    """A job whose hyperparameters and checkpoint were checked.

    Attributes:
        checkpoint: the Hugging Face directory.
        output: directory for the file with the reason of a failure.
        model_class: class of transformers that has the task's head.
        pooling: how token vectors become the vector of a text; None for tasks other than
            embeddings.
        normalize: whether embeddings have length 1 if a request does not say.
    """

    checkpoint: Path
    output: Path
    model_class: str
    pooling: str | None
    normalize: bool

    def to_json(self) -> str:
        """Returns the order as one line of JSON."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "WorkerCommand":
        """Returns the order that a line of JSON holds."""
        document = json.loads(text)
        for name in ("checkpoint", "output"):
            document[name] = Path(document[name])
        document["sequence_lengths"] = tuple(document["sequence_lengths"])
        return cls(**document)
