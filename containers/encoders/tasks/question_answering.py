"""Extractive question answering: a question and a context in, a part of the context out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

from containers.encoders.answers import WindowAnswers, question_answers, window_answers
from containers.encoders.requests import Question, QuestionParameters, QuestionRequest
from containers.encoders.tasks.task import RowInput, RowOutputs, Task, WindowContext
from containers.encoders.tokenization import TokenizedText
from containers.encoders.windows import Window, context_windows
from containers.serving.errors import InvalidRequestError


@dataclass(frozen=True)
class _WindowOutput:
    context: WindowContext[QuestionRequest]
    answers: WindowAnswers


class QuestionAnswering(Task[QuestionRequest]):
    """A `Task`; the model's outputs are `start_logits` and `end_logits`."""

    _request_type = QuestionRequest

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        request = self._description.parse(body)
        return self._setting.windows(
            request.inputs,
            request,
            partial(self._cut, request.parameters),
            noun="context",
            max_tokens=request.parameters.max_seq_len,
        )

    def decode(self, value: RowInput, outputs: RowOutputs) -> _WindowOutput:
        context: WindowContext[QuestionRequest] = value.context
        answers = window_answers(
            outputs["start_logits"],
            outputs["end_logits"],
            context.window,
            top_k=context.request.parameters.top_k,
            max_answer_tokens=context.request.parameters.max_answer_len,
        )
        return _WindowOutput(context, answers)

    def render(self, outputs: Sequence[_WindowOutput]) -> bytes:
        """Returns one object for each question, or an array of them with `top_k` above 1."""
        request = outputs[0].context.request
        asked = request.parameters
        answers: list[Any] = []
        for _, group in groupby(outputs, key=lambda output: output.context.number):
            windows = list(group)
            best = question_answers(
                windows[0].context.text,
                [window.answers for window in windows],
                top_k=asked.top_k,
                handle_impossible_answer=asked.handle_impossible_answer,
                align_to_words=asked.align_to_words,
            )
            answers.append(best if asked.top_k > 1 else best[0])
        return json.dumps(
            answers if request.inputs.is_list else answers[0], ensure_ascii=False
        ).encode()

    def values_to_render(self, outputs: Sequence[_WindowOutput]) -> int:
        return sum(len(output.answers.spans) for output in outputs)

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
