"""The parts of a policy document that may be one value or a list, and IAM's wildcards."""

import fnmatch
from typing import Any


# Any: JSON.
def listed(value: Any) -> list[Any]:
    """Returns a list of one value for a single value, and a list as it is."""
    return value if isinstance(value, list) else [value]


def matches(patterns: Any, value: str, *, ignore_case: bool = False) -> bool:
    """Returns whether a value matches a pattern.

    Args:
        patterns: one pattern or a list, with `*` and `?` as wildcards.
        value: for example an action or an ARN; in lower case if the case is ignored.
        ignore_case: whether the patterns' case is ignored.
    """
    for pattern in listed(patterns):
        # Brackets are no wildcards in IAM.
        escaped = pattern.replace("[", "[[]")
        if fnmatch.fnmatchcase(value, escaped.lower() if ignore_case else escaped):
            return True
    return False
