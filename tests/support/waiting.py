"""Waiting for a condition instead of a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


# Between two looks at what stays once it is there. A look through an API takes milliseconds of the
# processor that the awaited thread of the same process needs.
LASTING_SECONDS = 0.02


def eventually(
    condition: Callable[[], T], seconds: float = 60, *, pause_seconds: float = 0.005
) -> T:
    """Waits until a condition holds and returns its value; raises AssertionError if it is late."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds:g} s"
        time.sleep(pause_seconds)
    return value
