"""Embeddings: a text in, a vector out."""

from collections.abc import Sequence

import numpy as np

from containers.encoders.outputs import normalized
from containers.encoders.requests import EmbeddingRequest
from containers.encoders.tasks.task import RowInput, RowOutputs, Task, json_array


class Embeddings(Task[EmbeddingRequest]):
    """A `Task`; workers make `embedding`, [width] for each row, of the model's token vectors."""

    _request_type = EmbeddingRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._setting.whole_texts(
            request.inputs, request, truncate=request.truncate, parameter="truncate"
        )

    def decode(self, value: RowInput, outputs: RowOutputs) -> list[float]:
        request: EmbeddingRequest = value.context
        vector = outputs["embedding"]
        if not np.isfinite(vector).all():
            raise FloatingPointError("the model computed a vector that holds no finite numbers")
        normalize = self._setting.normalize if request.normalize is None else request.normalize
        values: list[float] = (normalized(vector) if normalize else vector).tolist()
        return values

    def render(self, outputs: Sequence[list[float]]) -> bytes:
        """Returns an array of vectors, even if the request had one text and no array."""
        return f"[{', '.join(map(json_array, outputs))}]".encode()

    def values_to_render(self, outputs: Sequence[list[float]]) -> int:
        """Returns the numbers of all vectors; ten of them take about one unit of time."""
        return sum(map(len, outputs)) // 10
