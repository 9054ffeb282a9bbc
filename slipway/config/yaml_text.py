"""Writes a section as YAML, with a comment above each field that needs one."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

COLUMNS = 100
"""Longest line of a comment."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
# YAML 1.1 reads these as something else than a text.
_NOT_TEXTS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def lines(
    content: Mapping[str, Any],
    comment: Callable[[tuple[str, ...]], str],
    path: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yields the lines of a section, with an empty line before each section of the file.

    Args:
        content: the section; JSON's types.
        comment: returns the words above a field, by the field's path; empty for none.
        path: the section's own path.
    """
    indent = "  " * len(path)
    for name, value in content.items():
        here = (*path, name)
        if not path and isinstance(value, dict):
            yield ""
        yield from comment_lines(comment(here), indent)
        if isinstance(value, dict) and value:
            yield f"{indent}{_key(name)}:"
            yield from lines(value, comment, here)
        else:
            yield f"{indent}{_key(name)}: {_value(value)}"


def comment_lines(text: str, indent: str = "") -> Iterator[str]:
    """Yields a comment, in lines of at most `COLUMNS` characters.

    Args:
        text: the words; none make no line.
        indent: white space before the comment.
    """
    prefix = f"{indent}# "
    if text:
        yield from textwrap.wrap(text, COLUMNS, initial_indent=prefix, subsequent_indent=prefix)


def _key(name: str) -> str:
    is_plain = _PLAIN_KEY.fullmatch(name) and name.lower() not in _NOT_TEXTS
    return name if is_plain else _value(name)


def _value(value: Any) -> str:
    """Returns a scalar or a list as JSON, which is YAML but for characters that are not printed."""
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
