"""Finds sentences on the documentation's pages that are hard to read: `make lint`.

It knows two signs: a sentence of too many words, and turns that make a reader go back. Code, tables
and headings are left out.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

LONGEST_WORDS = 35
# Turn to its replacement.
TURNS = {
    "the one of": 'a noun for "one"',
    "the ones of": 'a noun for "ones"',
    "of ours": '"Slipway\'s" before the noun',
    "of theirs": "the owner's name",
    "none of its": '"no" and the noun',
    "whoever": '"anyone who"',
    "hence": '"therefore"',
}
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s")
_END = re.compile(r"(?<=[.!?:;])\s+(?=[A-Z`(\[*\d])")


@dataclass(frozen=True, order=True)
class Finding:
    """A sentence to rewrite, at a line of a page."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def findings(path: str, text: str) -> Iterator[Finding]:
    """Yields the sentences of a Markdown page that are hard to read.

    Args:
        path: of the page, as it is shown.
        text: of the page.
    """
    # Lines keep their numbers.
    text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
    for line, paragraph in _paragraphs(text):
        for sentence in _END.split(paragraph):
            words = sentence.split()
            shown = " ".join(words[:6])
            if len(words) > LONGEST_WORDS:
                yield Finding(
                    path, line, f"{len(words)} words, at most {LONGEST_WORDS}: {shown} ..."
                )
            for turn, better in TURNS.items():
                if re.search(rf"\b{turn}\b", sentence, re.IGNORECASE):
                    yield Finding(path, line, f'"{turn}": write {better}: {shown} ...')


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Yields paragraphs and list items as one line each, with the number of their first line."""
    begin, lines = 0, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        is_prose = bool(line.strip()) and not line.lstrip().startswith(("|", "#"))
        if lines and (not is_prose or _ITEM.match(line)):
            yield begin, _plain(" ".join(lines))
            lines = []
        if is_prose:
            if not lines:
                begin = number
            lines.append(line.strip())


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", _CODE.sub("Code", _ITEM.sub("", text)))


def main(arguments: Sequence[str]) -> int:
    """Prints the findings of the pages, and returns 1 where there are any.

    Args:
        arguments: Markdown files, and folders that have some.
    """
    paths = [Path(argument) for argument in arguments]
    pages = [page for path in paths for page in (path.rglob("*.md") if path.is_dir() else [path])]
    found = sorted(
        finding for page in pages for finding in findings(str(page), page.read_text("utf-8"))
    )
    for finding in found:
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
