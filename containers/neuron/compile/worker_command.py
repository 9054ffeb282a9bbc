"""The order that the program of a compile job passes to its worker. It keeps to Python 3.10."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path

from containers.neuron.compile.job import Hyperparameters


@dataclass(frozen=True)
class WorkerCommand(Hyperparameters):
    """A job whose hyperparameters and checkpoint were checked; see `encoders.compile.checkpoint`.

    `output` is the directory for the file with the reason of a failure.
    """

    checkpoint: Path
    output: Path
    model_class: str
    pooling: str | None
    normalize: bool

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "WorkerCommand":
        document = json.loads(text)
        for name in ("checkpoint", "output"):
            document[name] = Path(document[name])
        document["sequence_lengths"] = tuple(document["sequence_lengths"])
        return cls(**document)
