"""Reads protobuf's text format into a tree that knows every value's place.

Google's own reader, google.protobuf.text_format, is not used here, for three reasons. It ends at
the first field that it does not know, and Slipway reports every problem at once. It keeps no places
of what it read, which later checks need. And the descriptor of ModelConfig comes only with NVIDIA's
client, whose module needs grpcio. A test compares this reader with Google's.

The grammar is https://protobuf.dev/reference/protobuf/textformat-spec/. Extensions and `Any` are
refused: ModelConfig has neither.
"""

import bisect
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_TOKEN = re.compile(
    r"""(?P<space>(?:[ \t\r\n\f\v]|\#[^\n]*)+)
      | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>[{}<>\[\]:;,-])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|[xX](?P<hex>[0-9a-fA-F]{1,2})"
    r"|u(?P<four>[0-9a-fA-F]{4})|U(?P<eight>[0-9a-fA-F]{8})|(?P<letter>.))",
    re.DOTALL,
)
_LETTERS = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "?": "?",
    "'": "'",
    '"': '"',
    "\\": "\\",
}
_CLOSING = {"{": "}", "<": ">"}
# Deeper than any field of ModelConfig, and far from Python's own limit.
_DEEPEST = 32


@dataclass(frozen=True, order=True)
class Position:
    """A place in the file; both count from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Scalar:
    """A value: a text without its quotes, a number as it is written, or a bare name."""

    kind: Literal["text", "number", "name"]
    text: str
    position: Position


@dataclass(frozen=True)
class Message:
    """Fields in the file's order; a list is several fields of one name.

    Args:
        fields: the fields.
        position: of the opening brace.
        left_out: names of fields that a check took out, because Triton would refuse them.
    """

    fields: tuple["Field", ...]
    position: Position
    left_out: frozenset[str] = frozenset()

    def all(self, name: str) -> Iterator["Field"]:
        """Yields the fields of a name."""
        return (field for field in self.fields if field.name == name)

    def one(self, name: str) -> "Field | None":
        """Returns the first field of a name."""
        return next(self.all(name), None)

    def messages(self, name: str) -> list["Message"]:
        """Returns the messages that fields of a name hold."""
        return [field.value for field in self.all(name) if isinstance(field.value, Message)]

    def scalars(self, name: str) -> list[Scalar]:
        """Returns the values that fields of a name hold."""
        return [field.value for field in self.all(name) if isinstance(field.value, Scalar)]

    def text(self, name: str) -> str:
        """Returns the text or name of a field; empty without one, as protobuf has it."""
        return next((scalar.text for scalar in self.scalars(name)), "")

    def integer(self, name: str) -> int | None:
        """Returns the number of a field; None without one."""
        return next((integer(scalar) for scalar in self.scalars(name)), None)

    def flag(self, name: str) -> bool:
        """Returns a field that is true or false; false without one."""
        return self.text(name) in TRUE

    def entries(self, name: str) -> Iterator[tuple[str, "Message"]]:
        """Yields key and entry of a field that maps texts to something."""
        return ((entry.text("key"), entry) for entry in self.messages(name))


@dataclass(frozen=True)
class Field:
    """A field, with its value and the place of its name."""

    name: str
    value: Scalar | Message
    position: Position


TRUE = ("true", "True", "t", "1")
FALSE = ("false", "False", "f", "0")


class TextFormatError(Exception):
    """The text is not in the format.

    Args:
        message: what is wrong.
        position: where.
    """

    def __init__(self, message: str, position: Position) -> None:
        super().__init__(message)
        self.message = message
        self.position = position


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


def parse(text: str) -> Message:
    """Returns the message that a text describes.

    Raises:
        TextFormatError: it is not in the format.
    """
    return _Reader(text).whole()


def integer(scalar: Scalar) -> int | None:
    """Returns a value as a whole number, written in any of the three ways; None if it is none."""
    if scalar.kind != "number":
        return None
    digits = scalar.text.removeprefix("-")
    is_octal = len(digits) > 1 and digits.startswith("0") and digits[1:].isdigit()
    try:
        value = int(digits, 8) if is_octal else int(digits, 0)
    except ValueError:
        return None
    return -value if scalar.text.startswith("-") else value


class _Reader:
    """Reads tokens from the left to the right; the grammar needs one token of lookahead."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._tokens = self._split(text)
        self._at = 0

    def whole(self) -> Message:
        return Message(tuple(self._fields("", 0)), Position(1, 1))

    def _split(self, text: str) -> Sequence[_Token]:
        tokens, offset = [], 0
        while offset < len(text):
            match = _TOKEN.match(text, offset)
            if match is None:
                quote = text[offset] in "\"'"
                raise self._error(
                    "a text has no closing quote on its line"
                    if quote
                    else f"{text[offset]!r} has no meaning here",
                    offset,
                )
            kind = str(match.lastgroup)
            if kind != "space":
                tokens.append(_Token(kind, match.group(), offset))
            offset = match.end()
            if kind == "number" and re.match(r"[A-Za-z_.]", text[offset : offset + 1]):
                raise self._error(f"a number cannot end in {text[offset]!r}", offset)
        return [*tokens, _Token("end", "", len(text))]

    def _fields(self, closing: str, depth: int) -> Iterator[Field]:
        while (token := self._next()).text != closing:
            if token.kind != "name":
                wanted = f"a field's name or `{closing}`" if closing else "a field's name"
                raise self._error(f"expected {wanted}{_not(token)}", token.offset)
            yield from self._values(token, depth)
            if self._peek().text in (",", ";"):
                self._next()

    def _values(self, name: _Token, depth: int) -> Iterator[Field]:
        position = self._position(name.offset)
        has_colon = self._takes(":")
        if self._takes("["):
            while not self._takes("]"):
                yield Field(name.text, self._value(name, depth, has_colon=has_colon), position)
                if self._takes(","):
                    if self._peek().text == "]":
                        raise self._error("a list cannot end in a comma", self._peek().offset)
                elif self._peek().text != "]":
                    token = self._peek()
                    raise self._error(f"expected `,` or `]` in the list{_not(token)}", token.offset)
        else:
            yield Field(name.text, self._value(name, depth, has_colon=has_colon), position)

    def _value(self, name: _Token, depth: int, *, has_colon: bool) -> Scalar | Message:
        token = self._next()
        position = self._position(token.offset)
        if token.kind == "sign" and token.text in _CLOSING:
            if depth == _DEEPEST:
                raise self._error(
                    f"messages lie in each other, more than {_DEEPEST} deep", token.offset
                )
            return Message(tuple(self._fields(_CLOSING[token.text], depth + 1)), position)
        if not has_colon:
            raise self._error(
                f"expected `:` or `{{` behind `{name.text}`{_not(token)}", token.offset
            )
        if token.kind == "text":
            text = self._unquoted(token)
            while self._peek().kind == "text":
                text += self._unquoted(self._next())
            return Scalar("text", self._decoded(text, token), position)
        if token.text == "-" and self._peek().kind in ("number", "name"):
            behind = self._next()
            return Scalar("number", f"-{behind.text}", position)
        if token.kind == "number":
            return Scalar("number", token.text, position)
        if token.kind == "name":
            return Scalar("name", token.text, position)
        raise self._error(f"expected a value of `{name.text}`{_not(token)}", token.offset)

    def _unquoted(self, token: _Token) -> bytes:
        body, content, begin = token.text[1:-1], b"", 0
        for match in _ESCAPE.finditer(body):
            content += body[begin : match.start()].encode() + self._escaped(match, token)
            begin = match.end()
        return content + body[begin:].encode()

    def _escaped(self, match: re.Match[str], token: _Token) -> bytes:
        if match["octal"] and int(match["octal"], 8) < 256:
            return bytes([int(match["octal"], 8)])
        if match["hex"]:
            return bytes([int(match["hex"], 16)])
        digits = match["four"] or match["eight"]
        if digits and int(digits, 16) <= sys.maxunicode:
            # Half of a pair becomes bytes that are no UTF-8, which is reported with its place.
            return chr(int(digits, 16)).encode("utf-8", "surrogatepass")
        if match["letter"] not in _LETTERS:
            raise self._error(f"`{match.group()}` is no escape", token.offset + 1 + match.start())
        return _LETTERS[match["letter"]].encode()

    def _decoded(self, content: bytes, token: _Token) -> str:
        try:
            return content.decode()
        except UnicodeDecodeError:
            raise self._error("the text is not UTF-8", token.offset) from None

    def _peek(self) -> _Token:
        return self._tokens[self._at]

    def _next(self) -> _Token:
        token = self._tokens[self._at]
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _takes(self, sign: str) -> bool:
        if self._peek().kind == "sign" and self._peek().text == sign:
            self._next()
            return True
        return False

    def _position(self, offset: int) -> Position:
        line = bisect.bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def _error(self, message: str, offset: int) -> TextFormatError:
        return TextFormatError(message, self._position(offset))


def _not(token: _Token) -> str:
    return ", and the file ends" if token.kind == "end" else f", not `{token.text}`"
