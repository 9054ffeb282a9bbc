"""Reads protobuf's text format into a tree that knows every value's place.

docs/architecture.md says why Google's own reader, google.protobuf.text_format, does not do this. A
test compares the two.

The grammar is https://protobuf.dev/reference/protobuf/textformat-spec/. Extensions and `Any` are
refused: ModelConfig has neither.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

# No token goes beyond its line.
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\f\v]+|\#.*)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>(?>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)(?![\w.]))
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>[{}<>\[\]:;,-])
      | (?P<other>[\w.]+|.)""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))"
)
_LETTERS = dict(zip("abfnrtv?'\"\\", "\a\b\f\n\r\t\v?'\"\\", strict=True))
_CLOSING = {"{": "}", "<": ">"}
# Deeper than any field of ModelConfig, and far from Python's own limit.
_DEEPEST = 32


@dataclass(frozen=True, order=True)
class Position:
    """A place in the file; both count from 1."""

    line: int
    column: int


START = Position(1, 1)


@dataclass(frozen=True)
class Scalar:
    """A value: a text without its quotes, a number as it is written, or a bare name."""

    kind: Literal["text", "number", "name"]
    text: str
    position: Position


@dataclass(frozen=True)
class Message:
    """Fields in the file's order, and the names of those that a check took out for Triton."""

    fields: tuple["Field", ...]
    position: Position
    left_out: frozenset[str] = frozenset()

    def all(self, name: str) -> Iterator["Field"]:
        return (field for field in self.fields if field.name == name)

    def one(self, name: str) -> "Field | None":
        return next(self.all(name), None)

    def messages(self, *names: str) -> list["Message"]:
        """Returns the messages in fields of a name; further names lead on into their fields."""
        found = [self]
        for name in names:
            values = (value for message in found for value in message._values(name))
            found = [value for value in values if isinstance(value, Message)]
        return found

    def scalars(self, name: str) -> list[Scalar]:
        return [value for value in self._values(name) if isinstance(value, Scalar)]

    def text(self, name: str) -> str:
        """Returns the text or name of a field; empty without one, as protobuf has it."""
        return next((scalar.text for scalar in self.scalars(name)), "")

    def integer(self, name: str) -> int | None:
        """Returns the number of a field; None without one."""
        return next((integer(scalar) for scalar in self.scalars(name)), None)

    def flag(self, name: str) -> bool:
        return self.text(name) in TRUE

    def entries(self, name: str) -> Iterator[tuple[str, "Message"]]:
        return ((entry.text("key"), entry) for entry in self.messages(name))

    def _values(self, name: str) -> Iterator["Scalar | Message"]:
        return (value for field in self.all(name) for value in field.values)


@dataclass(frozen=True)
class Field:
    """A field, with its value, or with the values of its list, and the place of its name."""

    name: str
    values: tuple[Scalar | Message, ...]
    position: Position
    is_list: bool


TRUE = ("true", "True", "t", "1")
FALSE = ("false", "False", "f", "0")


class TextFormatError(Exception):
    """The text is not in the format; says what is wrong, and where."""

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    position: Position

    def in_place_of(self, wanted: str) -> TextFormatError:
        found = "and the file ends" if self.kind == "end" else f"not `{self.text}`"
        return TextFormatError(f"expected {wanted}, {found}", self.position)


def parse(text: str) -> Message:
    """Returns the message that a text describes; a `TextFormatError` if it describes none."""
    return Message(tuple(_Reader(text).fields("", 0)), START)


def integer(scalar: Scalar) -> int | None:
    """Returns a value as a whole number, written in any of the three ways; None if it is none."""
    if scalar.kind != "number":
        return None
    digits = scalar.text.removeprefix("-")
    is_octal = len(digits) > 1 and digits.startswith("0") and digits[1:].isdigit()
    try:
        value = int(digits, 8 if is_octal else 0)
    except ValueError:
        return None
    return -value if scalar.text.startswith("-") else value


def _tokens(text: str) -> Iterator[_Token]:
    for number, line in enumerate(text.split("\n"), 1):
        for match in _TOKEN.finditer(line):
            token = _Token(str(match.lastgroup), match[0], Position(number, match.start() + 1))
            if token.text in ('"', "'"):
                raise TextFormatError("a text has no closing quote on its line", token.position)
            if token.kind == "other":
                raise TextFormatError(f"{token.text!r} has no meaning here", token.position)
            if token.kind != "space":
                yield token
        end = Position(number, len(line) + 1)
    yield _Token("end", "", end)


class _Reader:
    """Reads tokens from the left to the right; the grammar needs one token of lookahead."""

    def __init__(self, text: str) -> None:
        # All are split first: a quote that is missing explains more than what it leads to.
        self._tokens = iter(list(_tokens(text)))
        self._ahead = next(self._tokens)

    def fields(self, closing: str, depth: int) -> Iterator[Field]:
        while (name := self._next()).text != closing:
            if name.kind != "name":
                raise name.in_place_of(f"a field's name{closing and f' or `{closing}`'}")
            has_colon, is_list = self._takes(":"), self._takes("[")
            values = list[Scalar | Message]()
            while not (is_list and self._takes("]")):
                values.append(self._value(name, depth, has_colon=has_colon))
                if not is_list:
                    break
                has_comma, ends = self._takes(","), self._ahead.text == "]"
                if has_comma and ends:
                    raise TextFormatError("a list cannot end in a comma", self._ahead.position)
                if not has_comma and not ends:
                    raise self._ahead.in_place_of("`,` or `]` in the list")
            yield Field(name.text, tuple(values), name.position, is_list)
            if self._ahead.text in (",", ";"):
                self._next()

    def _value(self, name: _Token, depth: int, *, has_colon: bool) -> Scalar | Message:
        token = self._next()
        if token.text in _CLOSING:
            if depth == _DEEPEST:
                message = f"messages lie in each other, more than {_DEEPEST} deep"
                raise TextFormatError(message, token.position)
            return Message(tuple(self.fields(_CLOSING[token.text], depth + 1)), token.position)
        if not has_colon:
            raise token.in_place_of(f"`:` or `{{` behind `{name.text}`")
        if token.kind == "text":
            text = _unescaped(token)
            while self._ahead.kind == "text":
                text += _unescaped(self._next())
            try:
                decoded = text.encode("utf-8", "surrogateescape").decode()
            except UnicodeError:
                raise TextFormatError("the text is not UTF-8", token.position) from None
            return Scalar("text", decoded, token.position)
        if token.text == "-" and self._ahead.kind in ("number", "name"):
            return Scalar("number", f"-{self._next().text}", token.position)
        if token.kind == "number":
            return Scalar("number", token.text, token.position)
        if token.kind == "name":
            return Scalar("name", token.text, token.position)
        raise token.in_place_of(f"a value of `{name.text}`")

    def _next(self) -> _Token:
        token, self._ahead = self._ahead, next(self._tokens, self._ahead)
        return token

    def _takes(self, sign: str) -> bool:
        is_there = self._ahead.text == sign
        if is_there:
            self._next()
        return is_there


def _unescaped(token: _Token) -> str:
    """Returns a text without quotes and escapes; bytes are as `surrogateescape` has them."""

    def one(match: re.Match[str]) -> str:
        octal, hexadecimal, four, eight, letter = match.groups()
        if octal or hexadecimal:
            byte = int(octal, 8) if octal else int(hexadecimal, 16)
            if byte < 256:
                return bytes([byte]).decode("ascii", "surrogateescape")
        elif letter is None:
            character = int(four or eight, 16)
            if character <= sys.maxunicode:
                return chr(character)
        elif letter in _LETTERS:
            return _LETTERS[letter]
        line, column = token.position.line, token.position.column + 1 + match.start()
        raise TextFormatError(f"`{match[0]}` is no escape", Position(line, column))

    return _ESCAPE.sub(one, token.text[1:-1])
