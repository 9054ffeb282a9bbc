"""Nearest known name for a misspelt one, for error messages."""

import difflib
from collections.abc import Iterable


def nearest_name_hint(name: str, known_names: Iterable[str], *, common_prefix: str = "") -> str:
    """Returns ` (did you mean X?)`, or an empty string when nothing is close.

    Args:
        name: the misspelt one.
        known_names: what it may have meant.
        common_prefix: what all names start with; it would make any two of them look alike.
    """
    known = {known.removeprefix(common_prefix): known for known in sorted(known_names)}
    matches = difflib.get_close_matches(name.removeprefix(common_prefix), known, n=1, cutoff=0.6)
    return f" (did you mean {known[matches[0]]}?)" if matches else ""
