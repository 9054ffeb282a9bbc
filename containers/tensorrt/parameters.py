"""The parameters of a request: one table checks them and feeds the OpenAPI document.

Each parameter's meaning is defined once, here; `requests` defines which parameters go together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from containers.serving.errors import InvalidRequestError
from containers.serving.json_requests import json_type_name
from containers.serving.settings import ServingSettings

_MAX_SEED: Final = 2**63 - 1
_MAX_TOP_K: Final = 1_000_000
_MAX_TEMPERATURE: Final = 100.0
# Logits divided by less leave the range in which float64 can still tell them apart.
_MIN_TEMPERATURE: Final = 0.001
# Every new token is checked against each stop text.
_MAX_STOP_TEXTS: Final = 16
_MAX_STOP_CHARACTERS: Final = 1000
# A length to a higher power exceeds the largest float64.
_MAX_LENGTH_PENALTY: Final = 10.0
_PER_BATCH: Final = ", the endpoint's max_batch_size"

EarlyStopping: TypeAlias = bool | Literal["never"]
# Any: JSON.
Schema: TypeAlias = dict[str, Any]
Values: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class RequestLimits:
    """The limits that an endpoint sets for a request.

    Attributes:
        max_new_tokens: most new tokens of an answer.
        max_batch_size: most sequences that are computed at a time.
        max_texts: most texts; the length of the queue.
    """

    max_new_tokens: int
    max_batch_size: int = ServingSettings.max_batch_size
    max_texts: int = ServingSettings.max_queue_length


@dataclass(frozen=True)
class Flag:
    """True or false; false if the request does not set it."""

    name: str
    description: str

    def read(self, values: Values) -> bool:
        """Returns the value.

        Raises:
            InvalidRequestError: the value is not a boolean.
        """
        value = values.get(self.name, False)
        if not isinstance(value, bool):
            raise InvalidRequestError(
                f"{self.name} must be true or false, not {json_type_name(value)}."
            )
        return value

    def schema(self) -> Schema:
        """Returns the JSON Schema of the value."""
        return {"type": "boolean", "default": False, "description": self.description}


@dataclass(frozen=True)
class WholeNumber:
    """A whole number from `minimum` to `maximum`.

    Attributes:
        reason: says in the message where the maximum comes from.
    """

    name: str
    minimum: int
    maximum: int
    description: str
    default: int | None = None
    reason: str = ""

    def read(self, values: Values) -> int | None:
        """Returns the value, or the default, which may be None.

        Raises:
            InvalidRequestError: the value is not a whole number, or out of range.
        """
        if self.name not in values:
            return self.default
        value = values[self.name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidRequestError(f"{self.name} must be a whole number, not {_shown(value)}.")
        if not self.minimum <= value <= self.maximum:
            raise InvalidRequestError(
                f"{self.name}={_shown(value)} is not within {self.minimum} to {self.maximum}"
                f"{self.reason}."
            )
        return value

    def schema(self) -> Schema:
        """Returns the JSON Schema of the value."""
        schema = {"type": "integer", "minimum": self.minimum, "maximum": self.maximum}
        default = {} if self.default is None else {"default": self.default}
        return schema | default | {"description": self.description}


@dataclass(frozen=True)
class Number:
    """A number from `minimum`, which may be excluded, to `maximum`."""

    name: str
    minimum: float
    maximum: float
    description: str
    default: float = 1.0
    minimum_is_allowed: bool = True

    def read(self, values: Values) -> float:
        """Returns the value, or the default.

        Raises:
            InvalidRequestError: the value is not a number, or out of range.
        """
        value = values.get(self.name, self.default)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequestError(f"{self.name} must be a number, not {_shown(value)}.")
        is_minimum = value == self.minimum and not self.minimum_is_allowed
        if not self.minimum <= value <= self.maximum or is_minimum:
            above = "" if self.minimum_is_allowed else "above "
            raise InvalidRequestError(
                f"{self.name}={_shown(value)} is not within {above}{self.minimum:g} to "
                f"{self.maximum:g}."
            )
        return float(value)

    def schema(self) -> Schema:
        """Returns the JSON Schema of the value."""
        return {
            "type": "number",
            "minimum" if self.minimum_is_allowed else "exclusiveMinimum": self.minimum,
            "maximum": self.maximum,
            "default": self.default,
            "description": self.description,
        }


@dataclass(frozen=True)
class EarlyStoppingChoice:
    """True, false or "never"."""

    name: str
    description: str

    def read(self, values: Values) -> EarlyStopping:
        """Returns the value; false if the request does not set it.

        Raises:
            InvalidRequestError: the value is neither a boolean nor "never".
        """
        value = values.get(self.name, False)
        if isinstance(value, bool):
            return value
        if value == "never":
            return "never"
        shown = repr(value[:100]) if isinstance(value, str) else json_type_name(value)
        raise InvalidRequestError(f'{self.name} must be true, false or "never", not {shown}.')

    def schema(self) -> Schema:
        """Returns the JSON Schema of the value."""
        return {"enum": [True, False, "never"], "default": False, "description": self.description}


@dataclass(frozen=True)
class Texts:
    """An array of strings."""

    name: str
    max_texts: int
    max_characters: int
    description: str

    def read(self, values: Values) -> tuple[str, ...]:
        """Returns the value; empty if the request does not set it.

        Raises:
            InvalidRequestError: the value is not an array of strings, or too long.
        """
        if self.name not in values:
            return ()
        texts = values[self.name]
        if not isinstance(texts, list):
            raise InvalidRequestError(
                f"{self.name} must be an array of strings, not {json_type_name(texts)}."
            )
        if not 1 <= len(texts) <= self.max_texts:
            raise InvalidRequestError(
                f"{self.name} holds {len(texts)} texts: it must hold 1 to {self.max_texts}."
            )
        for index, text in enumerate(texts):
            name = f"{self.name}[{index}]"
            if not isinstance(text, str):
                raise InvalidRequestError(f"{name} must be a string, not {json_type_name(text)}.")
            if not 1 <= len(text) <= self.max_characters:
                raise InvalidRequestError(
                    f"{name} has {len(text)} characters: it must have 1 to {self.max_characters}."
                )
            check_unicode(name, text)
        return tuple(texts)

    def schema(self) -> Schema:
        """Returns the JSON Schema of the value."""
        return {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": self.max_characters},
            "minItems": 1,
            "maxItems": self.max_texts,
            "description": self.description,
        }


class Parameters:
    """The parameters that an endpoint takes, by name and in the order of the documentation.

    Args:
        limits: the endpoint's limits.
    """

    def __init__(self, limits: RequestLimits) -> None:
        batch = limits.max_batch_size
        self.max_new_tokens = WholeNumber(
            "max_new_tokens",
            1,
            limits.max_new_tokens,
            "Most new tokens of an answer; without it the endpoint's default_new_tokens.",
        )
        self.do_sample = Flag("do_sample", "Draws each token; otherwise it is the most likely one.")
        self.temperature = Number(
            "temperature",
            _MIN_TEMPERATURE,
            _MAX_TEMPERATURE,
            "Evens out the tokens' chances above 1, sharpens them below. With do_sample.",
        )
        self.top_k = WholeNumber(
            "top_k",
            1,
            _MAX_TOP_K,
            "Draws among that many most likely tokens; without it among all. With do_sample.",
        )
        self.top_p = Number(
            "top_p",
            0.0,
            1.0,
            "Draws among the most likely tokens that together have this chance. With do_sample.",
            minimum_is_allowed=False,
        )
        self.seed = WholeNumber(
            "seed",
            0,
            _MAX_SEED,
            "The same seed draws the same tokens; without it another one for each request. "
            "With do_sample.",
        )
        self.stop = Texts(
            "stop",
            _MAX_STOP_TEXTS,
            _MAX_STOP_CHARACTERS,
            "The answer ends just before the first of these texts. Not with beams.",
        )
        self.num_return_sequences = WholeNumber(
            "num_return_sequences",
            1,
            batch,
            "Answers to each text. Above 1 with do_sample, or with as many beams.",
            default=1,
            reason=_PER_BATCH,
        )
        self.num_beams = WholeNumber(
            "num_beams",
            1,
            batch,
            "Above 1: beam search, without do_sample.",
            default=1,
            reason=_PER_BATCH,
        )
        self.length_penalty = Number(
            "length_penalty",
            -_MAX_LENGTH_PENALTY,
            _MAX_LENGTH_PENALTY,
            "Above 0 favours long answers, below 0 short ones. With beams.",
        )
        self.early_stopping = EarlyStoppingChoice(
            "early_stopping", "When a beam search ends, as transformers defines it. With beams."
        )
        self.return_full_text = Flag("return_full_text", "Puts the prompt before its answer.")
        self.by_name = {
            parameter.name: parameter
            for parameter in (
                self.max_new_tokens,
                self.do_sample,
                self.temperature,
                self.top_k,
                self.top_p,
                self.seed,
                self.stop,
                self.num_return_sequences,
                self.num_beams,
                self.length_penalty,
                self.early_stopping,
                self.return_full_text,
            )
        }


def check_unicode(name: str, text: str) -> None:
    """Checks that a text can be written in UTF-8.

    Raises:
        InvalidRequestError: it holds half of a surrogate pair.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"{name} holds half of a surrogate pair at character {error.start}."
        ) from error


def _shown(value: object) -> str:
    """Returns a number as it is if it is short enough to read, or else the type's name."""
    if isinstance(value, float):
        return f"{value:g}"
    # Not through float: JSON's whole numbers may be larger than any.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        return str(value)
    return json_type_name(value)
