"""Extractive question answering: a question and a context in, a part of the context out."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from containers.neuron.answers import WindowAnswers, question_answers, window_answers
from containers.neuron.requests import Question, QuestionRequest
from containers.neuron.requests import parse_question_request as parse_request
from containers.neuron.tasks.task import RowInput, RowOutputs, TaskSetting
from containers.neuron.tokenization import TokenizedText
from containers.neuron.windows import Window, context_windows
from containers.serving.errors import InvalidRequestError


@dataclass(frozen=True)
class _WindowContext:
    request: QuestionRequest
    question_number: int
    text: TokenizedText
    window: Window


@dataclass(frozen=True)
class _WindowOutput:
    context: _WindowContext
    answers: WindowAnswers


class QuestionAnswering:
    """A `Task`; the model's outputs are `start_logits` and `end_logits`."""

    def __init__(self, setting: TaskSetting) -> None:
        self._setting = setting

    def parse(self, body: bytes) -> tuple[RowInput, ...]:
        """Returns the windows of every question, question after question."""
        request = parse_request(body, self._setting.limits)
        inputs: list[RowInput] = []
        for number, question in enumerate(request.questions):
            name = f"inputs[{number}]" if request.is_list else "inputs"
            inputs += self._windows(request, number, name, question)
            if len(inputs) > self._setting.max_inputs:
                raise InvalidRequestError(
                    f"The contexts up to {name} make {len(inputs)} windows of "
                    f"{request.max_window_tokens} tokens; the endpoint's max_queue_length allows "
                    f"{self._setting.max_inputs} in a request. Send shorter contexts, or fewer."
                )
        return tuple(inputs)

    def decode(self, value: RowInput, outputs: RowOutputs) -> _WindowOutput:
        """Finds the best spans of a window."""
        context: _WindowContext = value.context
        answers = window_answers(
            outputs["start_logits"],
            outputs["end_logits"],
            context.window,
            top_k=context.request.top_k,
            max_answer_tokens=context.request.max_answer_tokens,
        )
        return _WindowOutput(context, answers)

    def render(self, outputs: Sequence[_WindowOutput]) -> bytes:
        """Returns one object for each question, or an array of them with `top_k` above 1."""
        request = outputs[0].context.request
        answers: list[Any] = []
        for _, group in groupby(outputs, key=lambda output: output.context.question_number):
            windows = list(group)
            best = question_answers(
                windows[0].context.text,
                [window.answers for window in windows],
                top_k=request.top_k,
                handle_impossible_answer=request.handle_impossible_answer,
                align_to_words=request.align_to_words,
            )
            answers.append(best if request.top_k > 1 else best[0])
        return json.dumps(answers if request.is_list else answers[0], ensure_ascii=False).encode()

    def values_to_render(self, outputs: Sequence[_WindowOutput]) -> int:
        """Returns the number of spans of all windows, which are sorted and joined."""
        return sum(len(output.answers.spans) for output in outputs)

    def _windows(
        self, request: QuestionRequest, number: int, name: str, question: Question
    ) -> list[RowInput]:
        tokenizer = self._setting.tokenizer
        asked = tokenizer.tokenize(question.question).token_ids[: request.max_question_tokens]
        text = tokenizer.tokenize(question.context)
        if not len(text):
            raise InvalidRequestError(f"{name}.context holds no token that the model knows.")
        windows = context_windows(
            tokenizer.pair,
            asked,
            text,
            name=name,
            max_tokens=request.max_window_tokens,
            overlap=request.overlap_tokens,
        )
        return [
            self._setting.bucketed(window.row, _WindowContext(request, number, text, window))
            for window in windows
        ]
