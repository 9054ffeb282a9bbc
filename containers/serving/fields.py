"""The kinds of fields that a request may have; each reads values and describes them in OpenAPI.

`containers.serving.objects` explains how a request is made of them.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any, ClassVar, Self, TypeAlias

from containers.serving.json_requests import json_type_name
from containers.serving.openapi import Schema
from containers.serving.problems import LONGEST_SHOWN_CHARACTERS, Problems

# Any: a value, or a function of the endpoint's limits that returns the value.
Bound: TypeAlias = Any


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """The values that a field accepts.

    `default` is the attribute's value if the request does not set the field; null stands for it if
    the field `is_nullable`. A problem may suggest a field that `is_offered`. The annotation gives
    the `meaning` in the OpenAPI document.
    """

    default: Bound = None
    is_required: bool = False
    is_nullable: bool = False
    is_offered: ClassVar[bool] = True
    meaning: Bound = ""

    @property
    @abstractmethod
    def expected(self) -> str:
        """Returns the words for an accepted value in a problem."""

    @property
    @abstractmethod
    def json_types(self) -> tuple[type, ...]:
        """Returns the types of an accepted value."""

    @abstractmethod
    def value_schema(self) -> Schema:
        """Returns the JSON Schema of an accepted value."""

    def within(self, limits: object) -> Self:
        """Returns the kind with an endpoint's limits in place of functions of them."""
        return replace(self, **{name: _bound(each, limits) for name, each in vars(self).items()})

    # Any: JSON.
    def read(self, value: Any, path: str, problems: Problems) -> Any:
        """Returns the value of the attribute for a JSON value, or its default after a problem.

        Problems name the value by `path`, as in `inputs[3]`.
        """
        if value is None and self.is_nullable:
            return self.default
        if type(value) in self.json_types:
            problem = self.problem(value)
        else:
            problem = f" must be {self.expected}, not {self.shown(value)}."
        if problem is None:
            return self.convert(value, path, problems)
        problems.add(path, path + problem)
        return self.default

    def problem(self, _value: Any) -> str | None:
        """Returns the problem with a value of the right type, without its path at the start."""
        return None

    def shown(self, value: Any) -> str:
        return json_type_name(value)

    def convert(self, value: Any, _path: str, _problems: Problems) -> Any:
        """Returns the value of the attribute for a value without a problem of its own."""
        return value

    def schema(self) -> Schema:
        default = {} if self.default is None else {"default": self.default}
        return self.or_null(self.value_schema()) | default | self.description()

    def or_null(self, schema: Schema) -> Schema:
        return {"anyOf": [schema, {"type": "null"}]} if self.is_nullable else schema

    def description(self) -> Schema:
        return {"description": self.meaning} if self.meaning else {}

    def components(self) -> dict[str, Schema]:
        """Returns the schemas that the field's schema refers to, by name."""
        return {}


@dataclass(frozen=True)
class Flag(Kind):
    expected = "true or false"
    json_types = (bool,)

    def value_schema(self) -> Schema:
        return {"type": "boolean"}


@dataclass(frozen=True)
class Number(Kind):
    """A number from `minimum`, which may be excluded, to `maximum`, which has the `reason`."""

    minimum: Bound
    maximum: Bound
    minimum_is_allowed: bool = True
    reason: str = ""

    expected = "a number"
    json_types: ClassVar[tuple[type, ...]] = (int, float)

    def problem(self, value: Any) -> str | None:
        if self.minimum <= value <= self.maximum and (
            value != self.minimum or self.minimum_is_allowed
        ):
            return None
        above = "" if self.minimum_is_allowed else "above "
        limits = f"{above}{_shown(self.minimum)} to {_shown(self.maximum)}"
        return f"={_shown(value)} is not within {limits}{self.reason}."

    def shown(self, value: Any) -> str:
        return _shown(value)

    def convert(self, value: Any, _path: str, _problems: Problems) -> float:
        return float(value)

    def value_schema(self) -> Schema:
        minimum = "minimum" if self.minimum_is_allowed else "exclusiveMinimum"
        return {"type": "number", minimum: self.minimum, "maximum": self.maximum}


@dataclass(frozen=True)
class WholeNumber(Number):
    expected = "a whole number"
    json_types: ClassVar[tuple[type, ...]] = (int,)

    def convert(self, value: Any, _path: str, _problems: Problems) -> int:
        return int(value)

    def value_schema(self) -> Schema:
        return super().value_schema() | {"type": "integer"}


@dataclass(frozen=True)
class Choice(Kind):
    """One of several strings or booleans; `words` may describe them in a problem."""

    allowed: tuple[str | bool, ...]
    words: str = ""

    json_types = (str, bool)

    @property
    def expected(self) -> str:
        return self.words or f"one of {', '.join(map(str, self.allowed))}"

    def problem(self, value: Any) -> str | None:
        if value in self.allowed:
            return None
        is_short = isinstance(value, str) and len(value) <= LONGEST_SHOWN_CHARACTERS
        return f" must be {self.expected}, not {ascii(value) if is_short else self.shown(value)}."

    def value_schema(self) -> Schema:
        return {"enum": list(self.allowed)}


@dataclass(frozen=True)
class Text(Kind):
    """A string that UTF-8 can encode, of any length if `max_characters` is None."""

    min_characters: int = 1
    max_characters: Bound = None

    expected = "a string"
    expected_some = "at least one string"
    expected_or_several = "a string or an array of strings"
    json_types = (str,)

    def problem(self, value: Any) -> str | None:
        longest = self.max_characters
        if len(value) < self.min_characters or (longest is not None and len(value) > longest):
            return self.length_problem(len(value))
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                return f" holds half of a surrogate pair at character {error.start}."
        return None

    def length_problem(self, characters: int) -> str:
        if not characters:
            return " is an empty string: it must hold some text."
        return f" has {characters} characters; the limit is {self.max_characters}."

    def value_schema(self) -> Schema:
        longest = {} if self.max_characters is None else {"maxLength": self.max_characters}
        return {"type": "string", "minLength": self.min_characters} | longest


@dataclass(frozen=True)
class Texts(Kind):
    text: Text
    min_texts: int
    max_texts: int

    expected = "an array of strings"
    json_types: ClassVar[tuple[type, ...]] = (list,)

    def problem(self, value: Any) -> str | None:
        if self.min_texts <= len(value) <= self.max_texts:
            return None
        return f" holds {len(value)} texts: it must hold {self.min_texts} to {self.max_texts}."

    def convert(self, value: Any, path: str, problems: Problems) -> tuple[str, ...]:
        return tuple(
            self.text.read(each, f"{path}[{index}]", problems) for index, each in enumerate(value)
        )

    def value_schema(self) -> Schema:
        items = {"items": self.text.schema()}
        return {"type": "array"} | items | {"minItems": self.min_texts, "maxItems": self.max_texts}


@dataclass(frozen=True)
class TextOrTexts(Texts):
    expected = "a string or an array of strings"
    json_types = (str, list)

    def problem(self, value: Any) -> str | None:
        return None if isinstance(value, str) else super().problem(value)

    def convert(self, value: Any, path: str, problems: Problems) -> tuple[str, ...]:
        if isinstance(value, str):
            return (self.text.read(value, path, problems),)
        return super().convert(value, path, problems)

    def value_schema(self) -> Schema:
        return {"oneOf": [self.text.schema(), super().value_schema()]}


@dataclass(frozen=True)
class Unsupported(Kind):
    """A field of another server that this one refuses by name, unless its value is `neutral`."""

    neutral: tuple[Any, ...] = ()

    is_offered = False
    expected = "left out"
    json_types = ()

    def read(self, value: Any, path: str, problems: Problems) -> None:
        is_neutral = any(
            value == each and isinstance(value, bool) == isinstance(each, bool)
            for each in self.neutral
        )
        if not is_neutral and not (value is None and self.is_nullable):
            remedy = f" or send {json.dumps(self.neutral[0])}" if self.neutral else ""
            problems.add(path, f"{path} is not supported: leave it out{remedy}.")

    def value_schema(self) -> Schema:
        return {"enum": list(self.neutral)}


def _bound(value: Any, limits: object) -> Any:
    if isinstance(value, FunctionType):
        return value(limits)
    return value.within(limits) if isinstance(value, Kind) else value


def _shown(value: object) -> str:
    """Returns a number as it is if it is short enough to read, or else the type's name."""
    if isinstance(value, float):
        return f"{value:g}"
    # Not through float: JSON's whole numbers may be larger than any.
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 10**20:
        return str(value)
    return json_type_name(value)
