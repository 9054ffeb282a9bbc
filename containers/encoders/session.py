"""The interface of a runtime that computes batches. It keeps to Python 3.10."""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from containers.encoders.manifest import EMBEDDINGS, INPUT_NAMES, Manifest
from containers.encoders.outputs import pooled

Inputs = Mapping[str, NDArray[np.int64]]
# Any: float32, or the type that an operator of the graph returned.
Outputs = Mapping[str, NDArray[Any]]


class Session(Protocol):
    """Loaded graphs, one for each bucket; several threads may call it at a time."""

    def run(self, inputs: Inputs) -> Outputs:
        """Computes one batch of arrays [rows, columns], with the manifest's names at least.

        There are as many columns as a bucket has, or fewer if `Manifest.takes_any_length`.
        """


def computed(session: Session, manifest: Manifest, inputs: Inputs) -> Outputs:
    """Returns the outputs of a batch as tasks take them: embeddings are pooled."""
    outputs = session.run(inputs)
    if manifest.task != EMBEDDINGS:
        return outputs
    [vectors] = outputs.values()
    pooling = manifest.pooling or "mean"
    return {"embedding": pooled(vectors, inputs["attention_mask"], pooling)}


def warm_up(session: Session, manifest: Manifest) -> None:
    """Computes one batch of every bucket, so that the first request pays for no set-up."""
    rows = 1 if manifest.takes_partial_batches else manifest.batch_size
    for length in manifest.buckets:
        shape = (rows, length)
        inputs = {name: np.zeros(shape, np.int64) for name in INPUT_NAMES}
        inputs["attention_mask"][:] = 1
        computed(session, manifest, inputs)
