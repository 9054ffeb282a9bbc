"""Reads JSON that somebody else wrote."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Returns what a JSON text says.

    Args:
        text: the document; bytes are UTF-8, UTF-16 or UTF-32.

    Raises:
        ValueError: the text is no JSON, or is nested deeper than Python reads.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
