"""Counts the programs that tests start: each start of a CDK CLI, a JVM or a server costs seconds.

A shared fixture or helper that starts a program counts it here. The junit file of a run has the
counts of each test, and `python -m tools.suite_times` adds them up by folder.
"""

from collections import Counter
from collections.abc import Iterator

import pytest

# Starts since the last test ended: fixtures start programs on behalf of the test that comes next.
_counts: Counter[str] = Counter()


def count_start(program: str) -> None:
    """Adds one start of a kind of program: "cdk", "embedded-aws", "jvm", "server"."""
    _counts[program] += 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    if call.when == "teardown":
        item.user_properties += [(f"starts {name}", count) for name, count in _counts.items()]
        _counts.clear()
    return (yield)
