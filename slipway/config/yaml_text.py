"""Writes a section as YAML, with a comment above each field that needs one."""

import json
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from typing import Any

COLUMNS = 100
"""Longest line of a comment."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*")
# YAML 1.1 reads these as something else than a text.
_NOT_TEXTS = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null"})


def lines(
    content: Mapping[str, Any],
    comment: Callable[[tuple[str, ...]], str],
    path: tuple[str, ...] = (),
) -> Iterator[str]:
    """Yields the lines of a section, with an empty line before each section of the file.

    `comment` returns the words above a field, by the field's path; empty for none.
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
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            yield f"{indent}{_key(name)}:"
            for each in value:
                first, *others = lines(each, comment, (*here, ""))
                # The dash stands in the place of two spaces.
                yield f"{indent}  - {first.lstrip()}"
                yield from others
        else:
            yield f"{indent}{_key(name)}: {_value(value)}"


def comment_lines(text: str, indent: str = "", hanging: str = "") -> Iterator[str]:
    """Yields a comment, in lines of at most `COLUMNS` characters; no words make no line."""
    prefix = f"{indent}# "
    yield from textwrap.wrap(
        text,
        COLUMNS,
        initial_indent=prefix,
        subsequent_indent=f"{prefix}{hanging}",
        break_long_words=False,
        break_on_hyphens=False,
    )


def _key(name: str) -> str:
    return name if _is_plain(name) else _value(name)


def _is_plain(text: str) -> bool:
    """Whether YAML reads a text as itself without quotes."""
    return _PLAIN.fullmatch(text) is not None and text.lower() not in _NOT_TEXTS


def _value(value: Any) -> str:
    """Returns a scalar or a list: JSON is YAML, except characters that are not printed."""
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, str) and _is_plain(value):
        return value
    text = json.dumps(value, ensure_ascii=False)
    return "".join(letter if letter.isprintable() else _escape(letter) for letter in text)


def _escape(letter: str) -> str:
    code = ord(letter)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
