"""A plugin of pytest that runs the named tests in the named order until one fails.

It is copied into the virtual environment of a run, so it imports nothing of the project. A test
that takes much longer than in the recording fails, because a fault may make it wait for ever.
"""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ASKED = json.loads(Path(os.environ["PLANTED_FAULTS_ASKED"]).read_text("utf-8"))
_ANSWER = Path(os.environ["PLANTED_FAULTS_ANSWER"])
_DEADLINE = time.monotonic() + _ASKED["seconds"]
_LEAST_SECONDS = 30.0
_SLOWER_TIMES = 10.0

_answer: dict[str, Any] = {"passed": [], "failed": None, "is over": False}


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> Iterator[None]:
    """Keeps the tests that were asked for; runs last, because it sets the order."""
    result = yield
    asked = {test: index for index, (test, _) in enumerate(_ASKED["tests"])}
    seconds = dict(_ASKED["tests"])
    others = [item for item in items if item.nodeid not in asked]
    if others:
        config.hook.pytest_deselected(items=others)
    chosen = [item for item in items if item.nodeid in asked]
    items[:] = sorted(chosen, key=lambda item: asked[item.nodeid])
    for item in items:
        limit = max(_LEAST_SECONDS, _SLOWER_TIMES * seconds[item.nodeid])
        item.add_marker(pytest.mark.timeout(limit), append=False)
    return result


def pytest_runtest_logfinish() -> None:
    """Writes the results so far, because the run may be killed."""
    _write()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Ends the run in an orderly way when its time is over."""
    if time.monotonic() > _DEADLINE:
        item.session.shouldstop = "the time is over"
        _answer["is over"] = True
        pytest.skip("the time is over")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Records the first failure, in any phase of a test."""
    if report.when == "call" and report.passed:
        _answer["passed"].append(report.nodeid)
    if report.failed and _answer["failed"] is None:
        _answer["failed"] = report.nodeid
        _write()


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Records a file whose import fails: it notices the fault too."""
    if report.failed and _answer["failed"] is None:
        _answer["failed"] = report.nodeid
        _write()


def _write() -> None:
    _ANSWER.write_text(json.dumps(_answer), "utf-8")
