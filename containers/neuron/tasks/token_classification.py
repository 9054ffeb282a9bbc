"""Token classification: a text in, the entities in it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from containers.neuron.entities import entities
from containers.neuron.labels import Scores, scores
from containers.neuron.requests import TokenRequest
from containers.neuron.tasks.task import RowInput, RowOutputs, TaskSetting, json_array
from containers.neuron.tokenization import TokenizedText
from containers.neuron.windows import Window, kept_tokens, text_windows
from containers.serving.errors import InvalidRequestError
from containers.serving.objects import request_description


@dataclass(frozen=True)
class _WindowContext:
    request: TokenRequest
    text_number: int
    text: TokenizedText
    window: Window


@dataclass(frozen=True)
class _WindowOutput:
    context: _WindowContext
    token_scores: Scores


class TokenClassification:
    """A `Task`; the model's output is `logits`, [columns, labels] for each row."""

    def __init__(self, setting: TaskSetting) -> None:
        self._setting = setting
        self._description = request_description(TokenRequest, setting.limits)

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Returns the windows of every text, text after text."""
        request = self._description.parse(body)
        tokenizer = self._setting.tokenizer
        inputs: list[RowInput] = []
        for number, content in enumerate(request.inputs.values):
            name = request.inputs.name(number)
            text = tokenizer.tokenize(content)
            windows = text_windows(
                tokenizer.single,
                text,
                name=name,
                max_tokens=self._setting.buckets[-1],
                overlap=request.parameters.stride,
            )
            inputs += [
                self._setting.bucketed(window.row, _WindowContext(request, number, text, window))
                for window in windows
            ]
            if len(inputs) > self._setting.max_inputs:
                raise InvalidRequestError(
                    f"The texts up to {name} make {len(inputs)} windows of "
                    f"{self._setting.buckets[-1]} tokens; the endpoint's max_queue_length "
                    f"allows {self._setting.max_inputs} in a request. Send shorter texts, or fewer."
                )
        return tuple(inputs)

    def decode(self, value: RowInput, outputs: RowOutputs) -> _WindowOutput:
        """Returns the scores of a window's tokens."""
        context: _WindowContext = value.context
        logits = outputs["logits"][context.window.columns()]
        return _WindowOutput(context, scores(logits, "softmax"))

    def render(self, outputs: Sequence[_WindowOutput]) -> bytes:
        """Returns an array of entities, or an array of such arrays if the texts came in one."""
        request = outputs[0].context.request
        answers = []
        for _, group in groupby(outputs, key=lambda output: output.context.text_number):
            windows = list(group)
            text = windows[0].context.text
            answers.append(
                entities(
                    text,
                    _token_scores(windows),
                    self._setting.label_names,
                    strategy=request.parameters.aggregation_strategy,
                    ignore_labels=request.parameters.ignore_labels,
                )
            )
        texts = list(map(json_array, answers))
        return (f"[{', '.join(texts)}]" if request.inputs.is_list else texts[0]).encode()

    def values_to_render(self, outputs: Sequence[_WindowOutput]) -> int:
        """Returns the number of tokens of all windows; each may be an entity of its own."""
        return sum(len(output.token_scores) for output in outputs)


def _token_scores(windows: Sequence[_WindowOutput]) -> Scores:
    """Returns the scores of all tokens, each from the window with the most context around it."""
    ranges = [output.context.window.tokens for output in windows]
    parts = [
        output.token_scores[kept.start - tokens.start : kept.stop - tokens.start]
        for output, tokens, kept in zip(windows, ranges, kept_tokens(ranges), strict=True)
    ]
    return np.concatenate(parts)
