"""Reads JSON that somebody else wrote."""

import json
from typing import Any


def parse_json(text: str | bytes) -> Any:
    """Returns what a JSON text says; raises ValueError if it is none, or is nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
