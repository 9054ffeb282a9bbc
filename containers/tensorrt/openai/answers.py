"""Answers in the forms of OpenAI's API: completions, chats, and the events of both as streams."""

import json
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, Self

from containers.serving.events import spaced_event
from containers.tensorrt.answers import Answer, Answers

# Where a request names no model. An endpoint has one.
DEFAULT_MODEL: Final = "slipway"
_FINISH_REASONS: Final = {
    "length": "length",
    "eos_token": "stop",
    "stop_sequence": "stop",
}
_END: Final = spaced_event(b"[DONE]")

# Any: JSON.
_Json = dict[str, Any]


@dataclass
class OpenAiForm(ABC):
    id: str  # all events of a stream have the same one
    created: int  # the time of the request, in seconds since 1970
    model: str  # the name that the request gave
    sequences: int  # answers to each text
    has_usage: bool  # whether a stream ends with the numbers of tokens

    prefix: ClassVar[str]
    whole: ClassVar[str]
    chunk: ClassVar[str]

    @classmethod
    def new(cls, model: str | None, sequences: int, has_usage: bool) -> Self:
        return cls(
            id=f"{cls.prefix}-{uuid.uuid4().hex}",
            created=int(time.time()),
            model=model or DEFAULT_MODEL,
            sequences=sequences,
            has_usage=has_usage,
        )

    @abstractmethod
    def choice_part(self, text: str) -> _Json:
        """Returns the part of a choice that has the text of a whole answer."""

    @abstractmethod
    def delta_part(self, text: str) -> _Json:
        """Returns the part of a choice that has the next piece of a streamed answer."""

    def body(self, outputs: Sequence[Answers]) -> bytes:
        """Returns the JSON answer: a choice for each answer, the first text's first."""
        answers = [answer for output in outputs for answer in output.answers]
        choices = [
            _choice(index, self.choice_part(answer.text), _reason(answer))
            for index, answer in enumerate(answers)
        ]
        # Every answer to a text has an output of its own, and the text counts once.
        prompts = outputs[:: self.sequences]
        document = self._document(self.whole, choices) | {"usage": _usage(prompts, answers)}
        return _dump(document)

    def piece(self, text: str) -> bytes:
        return self._event([_choice(0, self.delta_part(text), None)])

    def last_piece(self, text: str, output: Answers) -> bytes:
        """Returns the event with the rest and the reason, the usage if asked for, and the end."""
        [answer] = output.answers
        events = self._event([_choice(0, self.delta_part(text), _reason(answer))])
        if self.has_usage:
            events += self._event([], _usage([output], [answer]))
        return events + _END

    def _event(self, choices: list[_Json], usage: _Json | None = None) -> bytes:
        told = {"usage": usage} if self.has_usage else {}
        return spaced_event(_dump(self._document(self.chunk, choices) | told))

    def _document(self, kind: str, choices: list[_Json]) -> _Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


class CompletionForm(OpenAiForm):
    prefix = "cmpl"
    whole = "text_completion"
    chunk = "text_completion"

    def choice_part(self, text: str) -> _Json:
        return {"text": text}

    delta_part = choice_part


@dataclass
class ChatForm(OpenAiForm):
    """The form of chats."""

    _has_role: bool = field(default=False, init=False)

    prefix = "chatcmpl"
    whole = "chat.completion"
    chunk = "chat.completion.chunk"

    def choice_part(self, text: str) -> _Json:
        return {"message": {"role": "assistant", "content": text}}

    def delta_part(self, text: str) -> _Json:
        role = {} if self._has_role else {"role": "assistant"}
        self._has_role = True
        return {"delta": role | {"content": text}}


def _choice(index: int, part: _Json, finish_reason: str | None) -> _Json:
    return {"index": index, **part, "logprobs": None, "finish_reason": finish_reason}


def _reason(answer: Answer) -> str | None:
    return _FINISH_REASONS[answer.finish_reason] if answer.finish_reason else None


def _usage(prompts: Sequence[Answers], answers: Sequence[Answer]) -> _Json:
    prompt_tokens = sum(prompt.prompt_tokens for prompt in prompts)
    completion_tokens = sum(answer.tokens for answer in answers)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }


# Any: JSON.
def _dump(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False).encode()
