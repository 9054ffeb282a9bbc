"""Waiting for a condition instead of a time."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def eventually(condition: Callable[[], T], seconds: float = 60) -> T:
    """Waits until a condition holds and returns its value.

    Raises:
        AssertionError: it did not hold within `seconds`.
    """
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"the condition did not hold within {seconds:g} s"
        time.sleep(0.005)
    return value
