"""Finds sentences that are hard to read: `make lint`.

On a page of the documentation it finds sentences and table cells with too many words. It also finds
turns that make a reader go back. It leaves out fenced code and headings. In every file it finds
riddles: phrases that are too short to be understood the first time.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LONGEST_WORDS: Final = 25
LONGEST_CELL_WORDS: Final = 25

# Turn to its replacement. A turn is a regular expression for whole words.
TURNS: Final = {
    "the one of": 'a noun for "one"',
    "the ones of": 'a noun for "ones"',
    "that of|those of": "the noun again",
    "of ours|ours": '"Slipway\'s" before the noun',
    "we|our": '"Slipway"',
    "of theirs|theirs": "the owner's name",
    "none of its": '"no" and the noun',
    "whoever": '"anyone who"',
    "hence": '"therefore"',
    "besides": '"also"',
    "but for": '"except"',
    "nothing but": '"only"',
    "(?:can|cannot|could|to|may|not) be had": '"available"',
    "(?:be|is|are|was|were) held against": '"compared with"',
    "(?:two|three|four|five) times of": '"in ... of ... trials"',
}
# Regular expressions for phrases of earlier versions that readers did not understand.
RIDDLES: Final = (
    "as any other is",
    "but where it says so",
    "by which it asks",
    "more by the medians",
    "cut to size by",
    "for whom it was begun",
    "hence stays in",
    "in other draws",
    "is of: the same",
    "limits the time that what",
    "names its weights by their address",
    "none: none",
    "of those that a copy",
    "on a cpu no row is free",
    "or away\\.",
    "takes and gives, and",
    "takes room for all of them",
    "the language can say",
    "what an image sets by",
    "what starts no server",
    "what was begun",
    "whether more is read than",
    "who forgets",
    "whoever only looks",
)

_FENCED = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\](?:\([^)]*\)|\[[^\]]*\])")
_ITEM = re.compile(r"^\s*(?:[-*]|\d+\.)\s")
_END = re.compile(r"(?<=[.!?:;])[*\"')]*\s+(?=[A-Z`(\[*\d])")
_CELL_END = re.compile(r"(?<!\\)\|")
# The signs between two lines of a comment, a docstring or an implicitly joined string.
_BETWEEN_LINES = re.compile(r"[\s#\"]+")
_TURNS = {re.compile(rf"\b(?:{turn})\b", re.IGNORECASE): better for turn, better in TURNS.items()}
_RIDDLE = re.compile("|".join(RIDDLES), re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Finding:
    """A sentence to rewrite, at a line of a file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


def findings(path: str, text: str) -> Iterator[Finding]:
    """Yields the sentences and cells of a Markdown page that are hard to read.

    Args:
        path: of the page, as it is shown.
        text: of the page.
    """
    # Lines keep their numbers.
    text = _FENCED.sub(lambda match: "\n" * match[0].count("\n"), text)
    for line, paragraph in _paragraphs(text):
        for sentence in _END.split(paragraph):
            yield from _too_long(path, line, sentence, LONGEST_WORDS)
            yield from _turns(path, line, sentence)
    for line, cell in _cells(text):
        yield from _too_long(path, line, cell, LONGEST_CELL_WORDS, where=" in a cell")
        yield from _turns(path, line, cell)


def riddles(path: str, text: str) -> Iterator[Finding]:
    """Yields the riddles of a file of any kind, also if a line break divides them.

    Args:
        path: of the file, as it is shown.
        text: of the file.
    """
    flat, lines = "", list[int]()
    for number, line in enumerate(text.splitlines(), 1):
        words = _BETWEEN_LINES.sub(" ", line).strip() + " "
        flat += words
        lines += [number] * len(words)
    for match in _RIDDLE.finditer(flat):
        yield Finding(path, lines[match.start()], f'riddle "{match[0]}": say who does what')


def _too_long(path: str, line: int, text: str, most: int, where: str = "") -> Iterator[Finding]:
    words = text.split()
    if len(words) > most:
        begin = " ".join(words[:6])
        yield Finding(path, line, f"{len(words)} words{where}, at most {most}: {begin} ...")


def _turns(path: str, line: int, text: str) -> Iterator[Finding]:
    for turn, better in _TURNS.items():
        if match := turn.search(text):
            around = " ".join(text.split()[:6])
            yield Finding(path, line, f'"{match[0]}": write {better}: {around} ...')


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


def _cells(text: str) -> Iterator[tuple[int, str]]:
    """Yields the cells of tables with the numbers of their lines. A link counts as one word."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("|"):
            for cell in _CELL_END.split(_CODE.sub("Code", line))[1:]:
                yield number, _LINK.sub("Link", cell)


def _plain(text: str) -> str:
    return _LINK.sub(r"\1", _CODE.sub("Code", _ITEM.sub("", text)))


def _files(argument: Path) -> Iterator[Path]:
    if argument.is_dir():
        for suffix in ("md", "py", "yaml"):
            yield from argument.rglob(f"*.{suffix}")
    else:
        yield argument


def main(arguments: Sequence[str]) -> int:
    """Prints the findings of the files, and returns 1 where there are any.

    Args:
        arguments: files, and folders that have Markdown, Python or YAML files.
    """
    found = set[Finding]()
    for path in (file for argument in arguments for file in _files(Path(argument))):
        if path.samefile(__file__):  # this file has to name the riddles
            continue
        text = path.read_text("utf-8")
        found.update(riddles(str(path), text))
        if path.suffix == ".md":
            found.update(findings(str(path), text))
    for finding in sorted(found):
        print(finding)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
