"""What the program of a compile job has its worker do. It keeps to Python 3.10."""

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class CompileOrder:
    """A job whose hyperparameters and checkpoint were checked.

    Attributes:
        checkpoint: the Hugging Face directory.
        output: where the reason of a failure goes.
        model_class: class of transformers that has the task's head.
        task: one of the manifest's.
        target: what the graphs are to run on, one of the manifest's.
        runtime: what is to run them, one of the target's.
        batch_size: rows of a graph.
        sequence_lengths: the buckets in tokens, ascending; a graph for each.
        pipeline_cores: NeuronCores that a graph is spread over; 1 is no pipeline.
        dtype: what matrix products are cast to.
        pooling: how the vector of a text is made of its tokens', for embeddings; else None.
        normalize: whether embeddings have length 1 where a request does not say.
    """

    checkpoint: Path
    output: Path
    model_class: str
    task: str
    target: str
    runtime: str
    batch_size: int
    sequence_lengths: tuple[int, ...]
    pipeline_cores: int
    dtype: str
    pooling: str | None
    normalize: bool

    def to_json(self) -> str:
        """Returns the order as one line."""
        return json.dumps(dataclasses.asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> "CompileOrder":
        """Returns the order of a line."""
        document = json.loads(text)
        for name in ("checkpoint", "output"):
            document[name] = Path(document[name])
        document["sequence_lengths"] = tuple(document["sequence_lengths"])
        return cls(**document)
