"""Tables of Markdown, and what fits their cells."""

import re
from collections.abc import Iterable

# What fits a cell. The rest of a description stands below the table.
LONGEST_MEANING_WORDS = 25


def table(heads: str, rows: Iterable[Iterable[str]]) -> str:
    """Returns a table; `heads` has the columns' titles, separated by `|`."""
    columns = heads.count("|") + 1
    lines = [f"| {heads} |", f"|{'---|' * columns}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def split_description(text: str) -> tuple[str, str]:
    """Returns what of a description fits a table's cell, in whole sentences, and the rest."""
    if len(text.split()) <= LONGEST_MEANING_WORDS:
        return text, ""
    sentences = re.split(r"(?<=[.!?]) (?=[A-Z`])", text)
    kept = sentences[:1]
    for sentence in sentences[1:]:
        if len(" ".join([*kept, sentence]).split()) > LONGEST_MEANING_WORDS:
            break
        kept.append(sentence)
    return " ".join(kept), " ".join(sentences[len(kept) :])


def meaning(description: str | None) -> str:
    return split_description(description or "")[0]
