"""The interface of a task.

A task turns requests' bodies into rows of the model, and the model's outputs into answers.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from containers.encoders.requests import RequestLimits
from containers.encoders.tokenization import Row, TextTokenizer, TokenizedText
from containers.encoders.windows import Window, whole_text
from containers.serving.errors import InvalidRequestError
from containers.serving.objects import Inputs, request_description

# Entries of an array that are written before other threads get a turn.
_ENTRIES_AT_ONCE: Final = 100

RequestT = TypeVar("RequestT")
TextT = TypeVar("TextT")

# Outputs of one row by name, padding included.
RowOutputs = Mapping[str, NDArray[np.floating[Any]]]


@dataclass(frozen=True)
class RowInput:
    """One row, and the data that its task needs to decode it.

    `bucket` is the shortest compiled sequence length that fits the row, in tokens.
    """

    row: Row
    bucket: int
    context: Any


@dataclass(frozen=True)
class WindowContext(Generic[RequestT]):
    """A window of the request's text of that number, as the context of its row."""

    request: RequestT
    number: int
    text: TokenizedText
    window: Window


@dataclass(frozen=True)
class TaskSetting:
    """The values that a task is made from, after the model directory was read.

    The model was compiled for the `buckets`, ascending. `max_inputs` is the most rows of a request,
    the length of the queue. Only classification tasks have `label_names`. The score function and
    `normalize` are the defaults of requests that do not choose.
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
        return RequestLimits(self.buckets[-1], self.max_inputs, self.max_characters)

    def bucketed(self, row: Row, context: Any) -> RowInput:
        bucket = next(length for length in self.buckets if len(row) <= length)
        return RowInput(row, bucket, context)

    def whole_texts(
        self, inputs: Inputs[str], context: Any, *, truncate: bool, parameter: str
    ) -> tuple[RowInput, ...]:
        """Returns a row for each text of a request; the texts are not cut into windows.

        Raises `InvalidRequestError` if a text is too long, and the request does not ask with
        `parameter` to cut it off.
        """
        return tuple(
            self.bucketed(
                whole_text(
                    self.tokenizer.single,
                    self.tokenizer.tokenize(text),
                    name=inputs.name(number),
                    parameter=parameter,
                    max_tokens=self.buckets[-1],
                    truncate=truncate,
                ),
                context,
            )
            for number, text in enumerate(inputs.values)
        )

    def windows(
        self,
        inputs: Inputs[TextT],
        request: Any,
        cut: Callable[[str, TextT], tuple[TokenizedText, Sequence[Window]]],
        *,
        noun: str,
        max_tokens: int,
    ) -> tuple[RowInput, ...]:
        """Returns a row for each window of a request's texts, text after text.

        `cut` returns the tokens and the windows of a text; it receives the text's path in the
        request, for messages. `noun` is the word for a text in messages. Raises
        `InvalidRequestError` if the windows are more than the queue holds.
        """
        rows: list[RowInput] = []
        for number, content in enumerate(inputs.values):
            name = inputs.name(number)
            text, windows = cut(name, content)
            rows += [
                self.bucketed(window.row, WindowContext(request, number, text, window))
                for window in windows
            ]
            if len(rows) > self.max_inputs:
                raise InvalidRequestError(
                    f"The {noun}s up to {name} make {len(rows)} windows of {max_tokens} tokens; "
                    f"the endpoint's max_queue_length allows {self.max_inputs} in a request. Send "
                    f"shorter {noun}s, or fewer."
                )
        return tuple(rows)


class Task(ABC, Generic[RequestT]):
    """One task; several threads may call its methods at a time."""

    # The named tuple of a request.
    _request_type: type[RequestT]

    def __init__(self, setting: TaskSetting) -> None:
        self._setting = setting
        self._description = request_description(self._request_type, setting.limits)

    @abstractmethod
    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Returns the rows of a request, or raises `InvalidRequestError`."""

    @abstractmethod
    def decode(self, value: RowInput, outputs: RowOutputs) -> Any:
        """Returns the decoded output of one row; small, and with all that `render` needs."""

    @abstractmethod
    def render(self, outputs: Sequence[Any]) -> bytes:
        """Returns the JSON answer of a request."""

    @abstractmethod
    def values_to_render(self, outputs: Sequence[Any]) -> int:
        """Returns how many values `render` has to write, in units of about ten microseconds."""


# Any: JSON.
def json_array(values: Sequence[Any]) -> str:
    """Returns the JSON of an array that may be long.

    It is written in pieces, because no other thread gets a turn while the JSON of a piece is made.
    One long answer therefore does not hold up other requests.
    """
    pieces = [
        json.dumps(values[first : first + _ENTRIES_AT_ONCE], ensure_ascii=False)[1:-1]
        for first in range(0, len(values), _ENTRIES_AT_ONCE)
    ]
    return f"[{', '.join(pieces)}]"
