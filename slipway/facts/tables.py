"""Reads a table of facts: a JSON file below this folder, with a date and its sources."""

import json
from importlib import resources
from typing import Any

UNKNOWN = "unknown"
"""What a cell holds that no source gives."""


def read_table(name: str) -> dict[str, Any]:
    """Returns the content of a file, by its path below this folder; callers keep the result."""
    text = resources.files(__package__).joinpath(name).read_text("utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def known(cell: Any) -> Any:
    """Returns a cell's value, None where no source gives one."""
    return None if cell == UNKNOWN else cell
