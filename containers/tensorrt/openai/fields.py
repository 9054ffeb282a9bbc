"""The fields that both of OpenAI's forms have, and the kinds that only they need.

(https://platform.openai.com/docs/api-reference)
"""

from dataclasses import dataclass
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

from containers.serving.fields import (
    Choice,
    Flag,
    Kind,
    Number,
    Text,
    TextOrTexts,
    Unsupported,
    WholeNumber,
)
from containers.serving.objects import Object
from containers.serving.openapi import Schema
from containers.serving.problems import Problems
from containers.tensorrt.parameters import (
    MAX_SEED,
    MAX_STOP_TEXTS,
    MAX_TOP_K,
    MIN_TEMPERATURE,
    PER_BATCH,
    STOP_TEXT,
    RequestLimits,
    max_batch_size,
    max_new_tokens,
)

_MAX_TEMPERATURE: Final = 2.0
_MAX_NAME_CHARACTERS: Final = 256
NOT_SUPPORTED: Final = "Not supported."


@dataclass(frozen=True)
class _Temperature(Number):
    """0, or a number that sampling can divide by."""

    def problem(self, value: Any) -> str | None:
        if 0 < value < MIN_TEMPERATURE:
            return f"={value:g} is neither 0 nor within {MIN_TEMPERATURE:g} to {self.maximum:g}."
        return super().problem(value)

    def value_schema(self) -> Schema:
        in_range = {"type": "number", "minimum": MIN_TEMPERATURE, "maximum": self.maximum}
        return {"anyOf": [{"const": 0}, in_range]}


# Any: JSON.
def refused(*neutral: Any) -> Unsupported:
    """Returns a field that is refused by name, unless its value is neutral or null."""
    return Unsupported(neutral=neutral, is_nullable=True)


class StreamOptions(NamedTuple):
    include_usage: Annotated[
        bool,
        Flag(default=False, is_nullable=True),
        "Sends the numbers of tokens in one more event, before the last.",
    ]


class TextPart(NamedTuple):
    type: Annotated[str, Choice(("text",), is_required=True), "Only text."]
    text: Annotated[str, Text(min_characters=0, is_required=True), "The text."]


_ANY_TEXT: Final = Text(min_characters=0)
_TEXT_PART: Final = Object(TextPart, "TextPart")


@dataclass(frozen=True)
class Content(Kind):
    """The content of a message: a string, or an array of parts that are text."""

    text: Text = _ANY_TEXT
    part: Object[TextPart] = _TEXT_PART

    expected = "a string or an array of text parts"
    json_types = (str, list)

    def convert(self, value: Any, path: str, problems: Problems) -> str:
        """Returns the text; parts are joined by line breaks, as in the LMI images."""
        if isinstance(value, str):
            text: str = self.text.read(value, path, problems)
            return text
        parts = [
            self.part.read(each, f"{path}[{index}]", problems) for index, each in enumerate(value)
        ]
        return "\n".join(part.text or "" for part in parts)

    def value_schema(self) -> Schema:
        return {"oneOf": [self.text.schema(), {"type": "array", "items": self.part.schema()}]}

    def components(self) -> dict[str, Schema]:
        return self.part.components()


class Message(NamedTuple):
    role: Annotated[
        str,
        Choice(("system", "developer", "user", "assistant"), is_required=True),
        "Who says it. The model's template decides which roles it knows.",
    ]
    content: Annotated[str, Content(is_required=True), "The text of the message."]
    name: Annotated[
        str | None, Text(max_characters=_MAX_NAME_CHARACTERS, is_nullable=True), "The speaker."
    ]
    refusal: Annotated[None, refused(), NOT_SUPPORTED]
    tool_calls: Annotated[None, refused([]), NOT_SUPPORTED]

    def for_template(self) -> dict[str, str]:
        named = {} if self.name is None else {"name": self.name}
        return {"role": self.role, "content": self.content} | named


_MESSAGE: Final = Object(Message, "Message")


@dataclass(frozen=True)
class Messages(Kind):
    message: Object[Message] = _MESSAGE

    expected = "an array of messages"
    json_types = (list,)

    def problem(self, value: Any) -> str | None:
        return None if value else " is an empty array: it must hold at least one message."

    def convert(self, value: Any, path: str, problems: Problems) -> tuple[Message, ...]:
        read = self.message.read
        return tuple(read(each, f"{path}[{index}]", problems) for index, each in enumerate(value))

    def value_schema(self) -> Schema:
        return {"type": "array", "items": self.message.schema(), "minItems": 1}

    def components(self) -> dict[str, Schema]:
        return self.message.components()


def _max_tokens_meaning(limits: RequestLimits) -> str:
    return (
        f"Most new tokens of an answer; without it {limits.generation.default_new_tokens}, or what "
        "the model's positions leave."
    )


ModelName: TypeAlias = Annotated[
    str | None,
    Text(max_characters=_MAX_NAME_CHARACTERS, is_nullable=True),
    "Is repeated in the answer. It does not choose a model, because an endpoint has one.",
]
MaxTokens: TypeAlias = Annotated[
    int | None, WholeNumber(1, max_new_tokens, is_nullable=True), _max_tokens_meaning
]
Temperature: TypeAlias = Annotated[
    float,
    _Temperature(0, _MAX_TEMPERATURE, default=1.0, is_nullable=True),
    "Above 0 each token is drawn: above 1 their chances are more even, below 1 less. With 0 it is "
    "the most likely token.",
]
TopP: TypeAlias = Annotated[
    float,
    Number(0.0, 1.0, minimum_is_allowed=False, default=1.0, is_nullable=True),
    "Draws among the most likely tokens that together have this chance.",
]
TopK: TypeAlias = Annotated[
    int | None,
    WholeNumber(1, MAX_TOP_K, is_nullable=True),
    "Draws among that many most likely tokens; without it among all. vLLM's extension.",
]
Choices: TypeAlias = Annotated[
    int,
    WholeNumber(1, max_batch_size, reason=PER_BATCH, default=1, is_nullable=True),
    "Answers to each prompt. Above 1 with a temperature above 0, and without stream.",
]
Seed: TypeAlias = Annotated[
    int | None,
    WholeNumber(0, MAX_SEED, is_nullable=True),
    "The same seed draws the same tokens; without it another one for each request.",
]
Stop: TypeAlias = Annotated[
    tuple[str, ...] | None,
    TextOrTexts(STOP_TEXT, 0, MAX_STOP_TEXTS, is_nullable=True),
    "The answer ends just before the first of these texts.",
]
Stream: TypeAlias = Annotated[
    bool, Flag(default=False, is_nullable=True), "Sends the one answer piece by piece."
]
Options: TypeAlias = Annotated[
    StreamOptions,
    Object(StreamOptions, "StreamOptions", is_nullable=True),
    "Only with stream.",
]
User: TypeAlias = Annotated[
    str | None,
    Text(min_characters=0, is_nullable=True),
    "The caller's name for its user. It does not change the answer.",
]
NoPenalty: TypeAlias = Annotated[None, refused(0), NOT_SUPPORTED]
NoBias: TypeAlias = Annotated[None, refused({}), NOT_SUPPORTED]
