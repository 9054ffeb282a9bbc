"""How an entry is written outside the site: in a terminal and in SARIF."""

import re
import textwrap

from slipway.codes.entry import Entry
from slipway.codes.table import group_of

FOLDER = "docs/troubleshooting"
_LINK = re.compile(r"\[([^\]]*)\]\(\.\./([^)]*)\)")
_WIDTH = 80


def plain(text: str) -> str:
    """Returns a text with the paths of pages in place of links: `reference (docs/reference.md)`."""
    return _LINK.sub(r"\1 (docs/\2)", text)


def page(entry: Entry) -> str:
    """Returns the page that has the entry, as a path in the repository."""
    return f"{FOLDER}/{group_of(entry.code).page}.md"


def explanation(entry: Entry) -> str:
    """Returns an entry as `slipway explain` prints it."""
    parts = [f"{entry.code}: {entry.title}", plain(entry.cause), f"Remedy: {plain(entry.remedy)}"]
    wrapped = [
        textwrap.fill(part, _WIDTH, break_long_words=False, break_on_hyphens=False)
        for part in parts
    ]
    return "\n\n".join([*wrapped, f"Page: {page(entry)}"])


def as_json(entry: Entry) -> dict[str, str]:
    """Returns an entry for machines; the keys are part of the command line's contract."""
    return {
        "code": entry.code.value,
        "title": entry.title,
        "cause": plain(entry.cause),
        "remedy": plain(entry.remedy),
        "page": page(entry),
    }
