"""Ends a test process that hangs: a run fails within minutes, and shows where it stood.

pytest-timeout raises an exception in a test that takes too long. Native code never sees it, and a
cleanup may wait for ever after it. Such a test ends with its process here, a while later. The
process first writes the stack of each of its threads to standard error.
"""

import faulthandler
import os
from collections.abc import Iterator
from typing import Any

import pytest

_stderr_key = pytest.StashKey[int]()
_limit_key = pytest.StashKey[float]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini(
        "seconds_after_timeout",
        "how long a test may still take after its timeout, before its process ends",
        default="60",
    )


def pytest_configure(config: pytest.Config) -> None:
    # What tests write to descriptor 2 is captured; a copy made now is not.
    config.stash[_stderr_key] = os.dup(2)


def pytest_unconfigure(config: pytest.Config) -> None:
    os.close(config.stash[_stderr_key])
    del config.stash[_stderr_key]


@pytest.hookimpl(tryfirst=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> None:
    """Starts the clock beside pytest-timeout's own, which the next hook starts."""
    grace_seconds = float(item.config.getini("seconds_after_timeout"))
    item.stash[_limit_key] = settings.timeout + grace_seconds
    _start(item)


@pytest.hookimpl(wrapper=True)
def pytest_exception_interact(node: pytest.Item | pytest.Collector) -> Iterator[None]:
    """Starts the clock anew for the cleanup: a failure stops this clock and pytest-timeout's."""
    yield
    if isinstance(node, pytest.Item):
        _start(node)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol() -> Iterator[None]:
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def _start(item: pytest.Item) -> None:
    if _limit_key in item.stash:
        file = item.config.stash[_stderr_key]
        faulthandler.dump_traceback_later(item.stash[_limit_key], exit=True, file=file)
