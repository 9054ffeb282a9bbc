"""The answers to a request, and the forms in which clients read them.

A form belongs to one request. It writes the body of an answer, and the events of a streamed answer.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from containers.serving.events import event
from containers.tensorrt.generation import FinishReason


@dataclass(frozen=True)
class Answer:
    text: str  # after the prompt, if the request asked for that
    tokens: int
    finish_reason: FinishReason | None  # None in a beam search


@dataclass(frozen=True)
class Answers:
    """The answers to one input."""

    answers: tuple[Answer, ...]  # one, or the best of a beam search
    prompt_tokens: int
    form: "AnswerForm"


class AnswerForm(Protocol):
    def body(self, outputs: Sequence[Answers]) -> bytes:
        """Returns the JSON answer; the outputs are in the order of the request's inputs."""

    def piece(self, text: str) -> bytes:
        """Returns the event of the next piece of a streamed answer."""

    def last_piece(self, text: str, output: Answers) -> bytes:
        """Returns the events that end a streamed answer; `text` is the rest, perhaps ""."""


class HuggingFaceForm:
    """Hugging Face's text-generation task; streams are a subset of Text Generation Inference's."""

    def body(self, outputs: Sequence[Answers]) -> bytes:
        """Returns `[{"generated_text": ...}, ...]`: all answers to a text, then the next text's."""
        texts = [{"generated_text": each.text} for output in outputs for each in output.answers]
        return json.dumps(texts, ensure_ascii=False).encode()

    def piece(self, text: str) -> bytes:
        return self._event(text)

    def last_piece(self, text: str, output: Answers) -> bytes:
        [answer] = output.answers
        return self._event(
            text,
            generated_text=answer.text,
            details={"finish_reason": answer.finish_reason, "generated_tokens": answer.tokens},
        )

    def _event(
        self,
        text: str,
        generated_text: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> bytes:
        document = {
            "token": {"text": text},
            "generated_text": generated_text,
            "details": details,
        }
        return event(json.dumps(document, ensure_ascii=False).encode())
