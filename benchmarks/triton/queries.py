"""The requests: misspelt search queries, in the JSON that Triton takes.

The sample has a token for each byte. The queries have 6 to 20 tokens, 11 on average. The published
case has 9 tokens in and 11 out.
"""

import json
from pathlib import Path

from benchmarks.errors import BenchmarkError
from containers.triton.repository import INPUT, OUTPUT

QUERIES = tuple(Path(__file__).with_name("queries.txt").read_text("utf-8").splitlines())
"""Sent in turn; three for each client at 16 clients."""


def token_count(query: str) -> int:
    """Returns the sample's tokens of a query: its bytes, and the end of text."""
    return len(query.encode()) + 1


def body(query: str) -> str:
    return json.dumps(
        {"inputs": [{"name": INPUT, "shape": [1, 1], "datatype": "BYTES", "data": [query]}]}
    )


def read_query(content: bytes) -> str:
    query: str = json.loads(content)["inputs"][0]["data"][0]
    return query


def answer(text: str) -> str:
    """Returns an answer's body, as far as `read_answer` reads it."""
    return json.dumps({"outputs": [{"name": OUTPUT, "data": [text]}]})


def read_answer(content: str) -> str:
    try:
        [output] = json.loads(content)["outputs"]
        [text] = output["data"]
    except (ValueError, TypeError, KeyError):
        text = None
    if not isinstance(text, str):
        raise BenchmarkError(f"not an answer to a query: {content[:500]}")
    return text
