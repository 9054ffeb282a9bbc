"""Finds sentences of pages that are hard to read: `make lint`."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MOST_WORDS: Final = 25
# Regular expressions for turns that make a reader go back, and what to write instead.
_TURNS: Final = {
    "the ones? of": "a noun",
    "that of|those of": "the noun again",
    "of ours|ours|we|our": '"Slipway"',
    "hence": '"therefore"',
    "besides": '"also"',
    "(?:can|cannot|could|to|may|not) be had": '"available"',
}
_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#.*$", re.MULTILINE)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
# A sentence ends with its stop, or with its paragraph, list item or cell.
_END = re.compile(r"(?<=[.!?:;])[*\"')]*\s+(?=[A-Z`(\[*\d])|\n\s*(?:[-*]|\d+\.)\s|\n\s*\n|\|")


def findings(page: str) -> Iterator[str]:
    prose = _HEADING.sub("\n", _FENCED.sub("\n", f"\n{page}"))
    for sentence in _END.split(_LINK.sub(r"\1", _CODE.sub("Code", prose))):
        words = sentence.split()
        if len(words) > MOST_WORDS:
            yield f"{len(words)} words, at most {MOST_WORDS}: {' '.join(words)}"
        for turn, better in _TURNS.items():
            if match := re.search(rf"\b(?:{turn})\b", sentence, re.IGNORECASE):
                yield f'"{match[0]}", write {better}: {" ".join(words)}'


def main(arguments: list[str]) -> int:
    """Prints the findings of pages and of the pages in folders; returns 1 where there are any."""
    paths = [path for each in map(Path, arguments) for path in (each, *each.rglob("*.md"))]
    pages = {path: path.read_text("utf-8") for path in paths if path.is_file()}
    found = [f"{path}: {text}" for path, page in pages.items() for text in findings(page)]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
