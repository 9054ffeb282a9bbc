"""What the table says of a code."""

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.codes.code import Code


@dataclass(frozen=True)
class Entry:
    """The explanation of one code; texts are Markdown, with links relative to docs/troubleshooting.

    Args:
        code: the code.
        title: at most eight words.
        cause: why Slipway or AWS refuses it.
        remedy: what to do about it.
    """

    code: Code
    title: str
    cause: str
    remedy: str


@dataclass(frozen=True)
class Group:
    """Codes that belong together, on one page.

    Args:
        first: smallest number that a code of the group may have.
        last: largest number.
        page: name of the page, without `.md`.
        title: of the page.
        introduction: what the problems have in common, and where a reader meets them.
        entries: by number.
    """

    first: int
    last: int
    page: str
    title: str
    introduction: str
    entries: Sequence[Entry]
