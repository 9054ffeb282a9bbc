"""What every task does: bodies to rows of the model, and what the model computed to answers."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from containers.neuron.requests import EmbeddingRequest, RequestLimits, SequenceRequest
from containers.neuron.tokenization import Row, TextTokenizer
from containers.neuron.windows import whole_text

# Entries of an array that are written without another thread having its turn.
_ENTRIES_AT_ONCE: Final = 100

# Of one row, by the output's name, padding included.
RowOutputs = Mapping[str, NDArray[np.floating[Any]]]


@dataclass(frozen=True)
class RowInput:
    """One row, and what its task has to know to decode it.

    Attributes:
        row: what the model computes.
        bucket: the shortest sequence length that it fits, in tokens.
        context: the task's own.
    """

    row: Row
    bucket: int
    context: Any


@dataclass(frozen=True)
class TaskSetting:
    """What a task is made from, once the model directory was read.

    Attributes:
        tokenizer: the model's.
        buckets: sequence lengths that the model was compiled for, ascending.
        max_inputs: most rows of a request; what the queue holds.
        max_characters: most characters of a text.
        label_names: of the classifications; empty for other tasks.
        score_function: of sequence classification, where the request does not say.
        normalize: of embeddings, where the request does not say.
    """

    tokenizer: TextTokenizer
    buckets: tuple[int, ...]
    max_inputs: int
    max_characters: int
    label_names: tuple[str, ...] = ()
    score_function: str = "softmax"
    normalize: bool = False

    @property
    def limits(self) -> RequestLimits:
        """What a request may hold."""
        return RequestLimits(self.buckets[-1], self.max_inputs, self.max_characters)

    def bucketed(self, row: Row, context: Any) -> RowInput:
        """Returns the input of a row, which fits the longest bucket."""
        bucket = next(length for length in self.buckets if len(row) <= length)
        return RowInput(row, bucket, context)

    def whole_texts(
        self, request: EmbeddingRequest | SequenceRequest, *, parameter: str
    ) -> tuple[RowInput, ...]:
        """Returns a row for each text of a request, which is not cut into windows.

        Args:
            request: is the context of each.
            parameter: what asks to cut off what is too long, for messages.

        Raises:
            InvalidRequestError: a text is too long, and nothing asks to cut it off.
        """
        return tuple(
            self.bucketed(
                whole_text(
                    self.tokenizer.single,
                    self.tokenizer.tokenize(text),
                    name=f"inputs[{number}]" if request.is_list else "inputs",
                    parameter=parameter,
                    max_tokens=self.buckets[-1],
                    truncate=request.truncate,
                ),
                request,
            )
            for number, text in enumerate(request.texts)
        )


class Task(Protocol):
    """One task; its methods may be called by several threads at a time."""

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Returns the rows of a request.

        Raises:
            InvalidRequestError: the body is not a valid request.
        """

    def decode(self, value: RowInput, outputs: RowOutputs) -> Any:
        """Returns what became of one row; small, and with all that `render` needs."""

    def render(self, outputs: Sequence[Any]) -> bytes:
        """Returns the JSON answer of a request."""

    def values_to_render(self, outputs: Sequence[Any]) -> int:
        """Returns how much `render` has to go through, in units of about ten microseconds."""


# Any: JSON.
def json_array(values: Sequence[Any]) -> str:
    """Returns the JSON of an array that may be long.

    It is written in pieces: no other thread, and so nobody else's request, has its turn while the
    JSON of a piece is made.
    """
    pieces = [
        json.dumps(values[first : first + _ENTRIES_AT_ONCE], ensure_ascii=False)[1:-1]
        for first in range(0, len(values), _ENTRIES_AT_ONCE)
    ]
    return f"[{', '.join(pieces)}]"
