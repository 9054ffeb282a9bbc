"""The committed results, and how to compare with them."""

import json
import re
from datetime import UTC, datetime

from benchmarks.machine import Machine
from benchmarks.program import RESULTS
from benchmarks.report import Context

_NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 11, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"node": "v24.1.0"}),
)


def committed(name):
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def document_of(content):
    """Returns the document that a run writes, as a reader of the file gets it."""
    return json.loads(json.dumps({**CONTEXT.as_json(), **content}))


def shape(value):
    """Returns the keys of a document at every level; a list has the keys of its first element."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    return [shape(value[0])] if isinstance(value, list) and value else None


def differing_lines(found, expected):
    """Returns the lines of a page that differ from the committed page by more than rounding.

    Committed pages were made of numbers with more digits than the documents have.
    """
    pairs = zip(found.splitlines(), expected.splitlines(), strict=True)
    return [one for one, other in pairs if not _is_same(one, other)]


def _is_same(one, other):
    return _NUMBER.sub("#", one) == _NUMBER.sub("#", other) and all(
        _is_near(*texts) for texts in zip(_NUMBER.findall(one), _NUMBER.findall(other), strict=True)
    )


def _is_near(one, other):
    found, expected = (float(each.replace(",", "")) for each in (one, other))
    last_digit = 10.0 ** -len(other.partition(".")[2])
    # Some rates have two digits in the documents.
    return abs(found - expected) <= 1.01 * last_digit + expected / 200
