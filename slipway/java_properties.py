"""Java's properties files, as `java.util.Properties` reads them from a stream of bytes.

(https://docs.oracle.com/en/java/javase/17/docs/api/java.base/java/util/Properties.html)

DJL Serving reads serving.properties in this way. A value written without this format's escapes
becomes another value there. A backslash and a space at the start are dropped, and a letter outside
ISO 8859-1 becomes two others.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_WHITE_SPACE = " \t\f"
_SEPARATORS = "=:"
_ESCAPES: Mapping[str, str] = {"\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", "\\": "\\\\"}
_ESCAPED: Mapping[str, str] = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_LINE_END = re.compile(r"\r\n|\r|\n")


class Entry(NamedTuple):
    """A key and its value, without escapes, and the number of the first line, from 1."""

    key: str
    value: str
    line: int


class EscapeError(ValueError):
    """An escape of a letter without its four hexadecimal digits; Java refuses the whole file."""

    def __init__(self, escape: str, line: int) -> None:
        super().__init__(f"{escape} is not an escape")
        self.escape = escape
        self.line = line


def render(properties: Mapping[str, str]) -> bytes:
    """Writes a file with one line for each key, in order."""
    return "".join(
        f"{_escape_key(key)}={_escape_value(value)}\n" for key, value in properties.items()
    ).encode("ascii")


def parse(content: bytes) -> dict[str, str]:
    """Reads a file: of a key that stands there twice, the last value; raises `EscapeError`."""
    return {entry.key: entry.value for entry in entries(content)}


def entries(content: bytes) -> list[Entry]:
    """Reads every entry of a file, in order, also of the same key; raises `EscapeError`."""
    return [_entry(line, number) for number, line in _logical_lines(content.decode("latin-1"))]


def _escape_key(key: str) -> str:
    return "".join(
        f"\\{letter}" if letter in " #!=:" else escaped for letter, escaped in _escaped(key)
    )


def _escape_value(value: str) -> str:
    kept = value.lstrip(" ")
    return "\\ " * (len(value) - len(kept)) + "".join(escaped for _, escaped in _escaped(kept))


def _escaped(text: str) -> Iterator[tuple[str, str]]:
    for letter in text:
        if letter in _ESCAPES:
            yield letter, _ESCAPES[letter]
        elif " " <= letter <= "~":
            yield letter, letter
        else:
            units = letter.encode("utf-16-be")
            yield (
                letter,
                "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)),
            )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yields the number and text of logical lines: joined after an escape, without comments."""
    pending: str | None = None
    first = 0
    for number, line in enumerate(_LINE_END.split(text), start=1):
        natural = line.lstrip(_WHITE_SPACE)
        if pending is None:
            if not natural or natural[0] in "#!":
                continue
            first = number
        joined = (pending or "") + natural
        if (len(joined) - len(joined.rstrip("\\"))) % 2:
            # Java takes what follows an escape alone for a line of its own.
            pending = joined[:-1] or None
        else:
            pending = None
            yield first, joined
    if pending:
        yield first, pending


def _entry(line: str, number: int) -> Entry:
    at = 0
    while at < len(line) and line[at] not in _SEPARATORS + _WHITE_SPACE:
        at += 2 if line[at] == "\\" else 1
    value = line[at:].lstrip(_WHITE_SPACE)
    if value and value[0] in _SEPARATORS:
        value = value[1:].lstrip(_WHITE_SPACE)
    return Entry(_unescape(line[:at], number), _unescape(value, number), number)


def _unescape(text: str, line: int) -> str:
    units = ""
    at = 0
    while at < len(text):
        letter = text[at]
        if letter != "\\":
            units += letter
            at += 1
        elif text[at + 1 : at + 2] == "u":
            digits = text[at + 2 : at + 6]
            if not re.fullmatch("[0-9A-Fa-f]{4}", digits):
                raise EscapeError(f"\\u{digits}", line)
            units += chr(int(digits, 16))
            at += 6
        else:
            units += _ESCAPED.get(text[at + 1 : at + 2], text[at + 1 : at + 2])
            at += 2
    # Two escapes may be the halves of one letter.
    return units.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
