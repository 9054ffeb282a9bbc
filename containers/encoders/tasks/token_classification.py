"""Token classification: a text in, the entities in it out."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from containers.encoders.entities import entities
from containers.encoders.outputs import Scores, scores
from containers.encoders.requests import TokenRequest
from containers.encoders.tasks.task import RowInput, RowOutputs, Task, WindowContext, json_array
from containers.encoders.tokenization import TokenizedText
from containers.encoders.windows import Window, kept_tokens, text_windows


@dataclass(frozen=True)
class _WindowOutput:
    context: WindowContext[TokenRequest]
    token_scores: Scores


class TokenClassification(Task[TokenRequest]):
    """A `Task`; the model's output is `logits`, [columns, labels] for each row."""

    _request_type = TokenRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        longest = self._setting.buckets[-1]

        def cut(name: str, content: str) -> tuple[TokenizedText, list[Window]]:
            tokenizer = self._setting.tokenizer
            text = tokenizer.tokenize(content)
            overlap = request.parameters.stride
            return text, text_windows(
                tokenizer.single, text, name=name, max_tokens=longest, overlap=overlap
            )

        return self._setting.windows(request.inputs, request, cut, noun="text", max_tokens=longest)

    def decode(self, value: RowInput, outputs: RowOutputs) -> _WindowOutput:
        context: WindowContext[TokenRequest] = value.context
        logits = outputs["logits"][context.window.columns()]
        return _WindowOutput(context, scores(logits, "softmax"))

    def render(self, outputs: Sequence[_WindowOutput]) -> bytes:
        """Returns an array of entities, or an array of such arrays if the texts came in one."""
        request = outputs[0].context.request
        answers = []
        for _, group in groupby(outputs, key=lambda output: output.context.number):
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
