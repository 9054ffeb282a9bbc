"""Sequence classification: a text in, its labels out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from containers.encoders.outputs import best_labels, scores
from containers.encoders.requests import SequenceRequest
from containers.encoders.tasks.task import RowInput, RowOutputs, Task


@dataclass(frozen=True)
class _TextOutput:
    request: SequenceRequest
    # Any: JSON.
    labels: list[dict[str, Any]]


class SequenceClassification(Task[SequenceRequest]):
    """A `Task`; the model's output is `logits`, [labels] for each row."""

    _request_type = SequenceRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._setting.whole_texts(
            request.inputs, request, truncate=request.parameters.truncation, parameter="truncation"
        )

    def decode(self, value: RowInput, outputs: RowOutputs) -> _TextOutput:
        request: SequenceRequest = value.context
        asked = request.parameters
        function = asked.function_to_apply or self._setting.score_function
        labels = best_labels(
            scores(outputs["logits"], function), self._setting.label_names, top_k=asked.top_k
        )
        return _TextOutput(request, labels)

    def render(self, outputs: Sequence[_TextOutput]) -> bytes:
        """Returns an array of labels, or an array of such arrays if the texts came as an array."""
        answers = [output.labels for output in outputs]
        is_list = outputs[0].request.inputs.is_list
        return json.dumps(answers if is_list else answers[0], ensure_ascii=False).encode()

    def values_to_render(self, outputs: Sequence[_TextOutput]) -> int:
        return sum(len(output.labels) for output in outputs)
