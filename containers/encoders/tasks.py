"""The four tasks: from a request's body to rows of the model, and from outputs to an answer."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from containers.encoders.answers import question_answers, window_answers
from containers.encoders.entities import entities
from containers.encoders.manifest import (
    EMBEDDINGS,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    TOKEN_CLASSIFICATION,
)
from containers.encoders.outputs import Scores, best_labels, normalized, scores
from containers.encoders.requests import (
    EmbeddingRequest,
    Question,
    QuestionParameters,
    QuestionRequest,
    RequestLimits,
    SequenceRequest,
    TokenRequest,
)
from containers.encoders.tokenization import Row, TextTokenizer, TokenizedText
from containers.encoders.windows import (
    Window,
    context_windows,
    kept_tokens,
    text_windows,
    whole_text,
)
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


class _Window(NamedTuple):
    """A window of the request's text of that number, as the context of its row."""

    request: Any
    number: int
    text: TokenizedText
    window: Window


class _Output(NamedTuple):
    """The decoded output of a row, and the row's context."""

    context: Any
    value: Any


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


class Task(ABC, Generic[RequestT]):
    """One task; several threads may call its methods at a time."""

    # The named tuple of a request.
    _request_type: type[RequestT]

    def __init__(self, setting: TaskSetting) -> None:
        self._setting = setting
        self._longest = setting.buckets[-1]
        limits = RequestLimits(self._longest, setting.max_inputs, setting.max_characters)
        self._description = request_description(self._request_type, limits)

    @abstractmethod
    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Returns the rows of a request, or raises `InvalidRequestError`."""

    @abstractmethod
    def decode(self, value: RowInput, outputs: RowOutputs) -> Any:
        """Returns the decoded output of one row; small, and with all that `render` needs."""

    @abstractmethod
    def render(self, outputs: Sequence[Any]) -> bytes:
        """Returns the JSON answer of a request, an array if its inputs came as one."""

    @abstractmethod
    def values_to_render(self, outputs: Sequence[Any]) -> int:
        """Returns how many values `render` has to write, in units of about ten microseconds."""

    def _bucketed(self, row: Row, context: Any) -> RowInput:
        bucket = next(length for length in self._setting.buckets if len(row) <= length)
        return RowInput(row, bucket, context)

    def _whole_texts(
        self, inputs: Inputs[str], context: Any, *, truncate: bool, parameter: str
    ) -> tuple[RowInput, ...]:
        """Returns a row for each text of a request; the texts are not cut into windows.

        Raises `InvalidRequestError` if a text is too long, and the request does not ask with
        `parameter` to cut it off.
        """
        tokenizer = self._setting.tokenizer
        return tuple(
            self._bucketed(
                whole_text(
                    tokenizer.single,
                    tokenizer.tokenize(text),
                    name=inputs.name(number),
                    parameter=parameter,
                    max_tokens=self._longest,
                    truncate=truncate,
                ),
                context,
            )
            for number, text in enumerate(inputs.values)
        )

    def _windows(
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
        most = self._setting.max_inputs
        for number, content in enumerate(inputs.values):
            name = inputs.name(number)
            text, windows = cut(name, content)
            rows += [
                self._bucketed(window.row, _Window(request, number, text, window))
                for window in windows
            ]
            if len(rows) > most:
                raise InvalidRequestError(
                    f"The {noun}s up to {name} make {len(rows)} windows of {max_tokens} tokens; "
                    f"the endpoint's max_queue_length allows {most} in a request. Send shorter "
                    f"{noun}s, or fewer."
                )
        return tuple(rows)


class QuestionAnswering(Task[QuestionRequest]):
    """Finds a part of a context; the model's outputs are `start_logits` and `end_logits`."""

    _request_type = QuestionRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._windows(
            request.inputs,
            request,
            partial(self._cut, request.parameters),
            noun="context",
            max_tokens=request.parameters.max_seq_len,
        )

    def decode(self, value: RowInput, outputs: RowOutputs) -> _Output:
        context: _Window = value.context
        asked: QuestionParameters = context.request.parameters
        answers = window_answers(
            outputs["start_logits"],
            outputs["end_logits"],
            context.window,
            top_k=asked.top_k,
            max_answer_tokens=asked.max_answer_len,
        )
        return _Output(context, answers)

    def render(self, outputs: Sequence[_Output]) -> bytes:
        """Returns one object for each question, or an array of them with `top_k` above 1."""
        request: QuestionRequest = outputs[0].context.request
        asked = request.parameters
        answers: list[Any] = []
        for windows in _by_text(outputs):
            best = question_answers(
                windows[0].context.text,
                [window.value for window in windows],
                top_k=asked.top_k,
                handle_impossible_answer=asked.handle_impossible_answer,
                align_to_words=asked.align_to_words,
            )
            answers.append(best if asked.top_k > 1 else best[0])
        return _one_or_all(request.inputs, answers)

    def values_to_render(self, outputs: Sequence[_Output]) -> int:
        return sum(len(output.value.spans) for output in outputs)

    def _cut(
        self, parameters: QuestionParameters, name: str, question: Question
    ) -> tuple[TokenizedText, list[Window]]:
        tokenizer = self._setting.tokenizer
        asked = tokenizer.tokenize(question.question).token_ids[: parameters.max_question_len]
        text = tokenizer.tokenize(question.context)
        if not len(text):
            raise InvalidRequestError(f"{name}.context holds no token that the model knows.")
        windows = context_windows(
            tokenizer.pair,
            asked,
            text,
            name=name,
            max_tokens=parameters.max_seq_len,
            overlap=parameters.doc_stride,
        )
        return text, windows


class SequenceClassification(Task[SequenceRequest]):
    """Finds the labels of a text; the model's output is `logits`, [labels] for each row."""

    _request_type = SequenceRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._whole_texts(
            request.inputs, request, truncate=request.parameters.truncation, parameter="truncation"
        )

    def decode(self, value: RowInput, outputs: RowOutputs) -> _Output:
        request: SequenceRequest = value.context
        asked = request.parameters
        function = asked.function_to_apply or self._setting.score_function
        labels = best_labels(
            scores(outputs["logits"], function), self._setting.label_names, top_k=asked.top_k
        )
        return _Output(request, labels)

    def render(self, outputs: Sequence[_Output]) -> bytes:
        return _one_or_all(outputs[0].context.inputs, [output.value for output in outputs])

    def values_to_render(self, outputs: Sequence[_Output]) -> int:
        return sum(len(output.value) for output in outputs)


class TokenClassification(Task[TokenRequest]):
    """Finds the entities of a text; the model's output is `logits`, [columns, labels]."""

    _request_type = TokenRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        longest, overlap = self._longest, request.parameters.stride
        tokenizer = self._setting.tokenizer

        def cut(name: str, content: str) -> tuple[TokenizedText, list[Window]]:
            text = tokenizer.tokenize(content)
            return text, text_windows(
                tokenizer.single, text, name=name, max_tokens=longest, overlap=overlap
            )

        return self._windows(request.inputs, request, cut, noun="text", max_tokens=longest)

    def decode(self, value: RowInput, outputs: RowOutputs) -> _Output:
        context: _Window = value.context
        logits = outputs["logits"][context.window.columns()]
        return _Output(context, scores(logits, "softmax"))

    def render(self, outputs: Sequence[_Output]) -> bytes:
        request: TokenRequest = outputs[0].context.request
        texts = [
            json_array(
                entities(
                    windows[0].context.text,
                    _token_scores(windows),
                    self._setting.label_names,
                    strategy=request.parameters.aggregation_strategy,
                    ignore_labels=request.parameters.ignore_labels,
                )
            )
            for windows in _by_text(outputs)
        ]
        return (f"[{', '.join(texts)}]" if request.inputs.is_list else texts[0]).encode()

    def values_to_render(self, outputs: Sequence[_Output]) -> int:
        """Returns the number of tokens of all windows; each may be an entity of its own."""
        return sum(len(output.value) for output in outputs)


class Embeddings(Task[EmbeddingRequest]):
    """Makes a vector of a text; workers make `embedding`, [width], of the model's token vectors."""

    _request_type = EmbeddingRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._whole_texts(
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


TASKS: Final[Mapping[str, Callable[[TaskSetting], Task[Any]]]] = {
    QUESTION_ANSWERING: QuestionAnswering,
    SEQUENCE_CLASSIFICATION: SequenceClassification,
    TOKEN_CLASSIFICATION: TokenClassification,
    EMBEDDINGS: Embeddings,
}


def _by_text(outputs: Sequence[_Output]) -> Iterator[list[_Output]]:
    """Yields the windows of each text."""
    for _, group in groupby(outputs, key=lambda output: output.context.number):
        yield list(group)


def _token_scores(windows: Sequence[_Output]) -> Scores:
    """Returns the scores of all tokens, each from the window with the most context around it."""
    ranges = [output.context.window.tokens for output in windows]
    parts = [
        output.value[kept.start - tokens.start : kept.stop - tokens.start]
        for output, tokens, kept in zip(windows, ranges, kept_tokens(ranges), strict=True)
    ]
    return np.concatenate(parts)


# Any: JSON.
def _one_or_all(inputs: Inputs[Any], answers: Sequence[Any]) -> bytes:
    return json.dumps(answers if inputs.is_list else answers[0], ensure_ascii=False).encode()


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
