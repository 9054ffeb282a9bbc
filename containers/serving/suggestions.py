"""Nearest known name for a misspelt one, for error messages."""

import difflib
from collections.abc import Iterable


def nearest_name_hint(name: str, known_names: Iterable[str]) -> str:
    """Returns ` (did you mean X?)`, or an empty string when nothing is close."""
    matches = difflib.get_close_matches(name, sorted(known_names), n=1, cutoff=0.6)
    return f" (did you mean {matches[0]}?)" if matches else ""
