"""The known name nearest to a misspelt name, for error messages."""

import difflib
from collections.abc import Iterable


def nearest_name_hint(name: str, known_names: Iterable[str], *, common_prefix: str = "") -> str:
    """Returns ` (did you mean X?)`, or an empty string when no known name is close.

    The prefix that all names share is ignored, because it would make any two names look alike.
    """
    known = {known.removeprefix(common_prefix): known for known in sorted(known_names)}
    matches = difflib.get_close_matches(name.removeprefix(common_prefix), known, n=1, cutoff=0.6)
    return f" (did you mean {known[matches[0]]}?)" if matches else ""
