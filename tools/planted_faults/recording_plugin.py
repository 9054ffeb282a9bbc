"""A plugin of pytest that tells coverage.py which test runs, and writes each test's seconds.

It is copied into the virtual environment of a recording, so it imports nothing of the project.
Labels begin with `test ` or `fixture `. A process that a test starts finds its label in VARIABLE.
"""

import functools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

VARIABLE = "PLANTED_FAULTS_LABEL"
_PACKAGES = os.environ["PLANTED_FAULTS_PACKAGES"].split(",")
_WRITTEN = Path(os.environ["PLANTED_FAULTS_TESTS"])


def _switch(label: str) -> str:
    """Counts the following lines for a label; returns the previous label."""
    before = os.environ.get(VARIABLE, "")
    os.environ[VARIABLE] = label
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(label)
    return before


def _fixture_id(fixture: pytest.FixtureDef[Any], index: int) -> str:
    return f"{fixture.baseid}::{fixture.argname}[{index}]"


def _is_of_pytest(fixture: pytest.FixtureDef[Any]) -> bool:
    return str(getattr(fixture.func, "__module__", "")).startswith("_pytest.")


class _Recording:
    """The records of one process; with workers, the first process collects the others'."""

    def __init__(self) -> None:
        self._tests: dict[str, dict[str, Any]] = {}
        self._fixture_seconds: dict[str, float] = {}
        self._setup_seconds: dict[str, float] = {}
        self._modules = 0
        self._caches: list[Any] = []

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._clear_caches()
        self._setup_seconds = {}
        before = _switch(f"test {item.nodeid}")
        result = yield
        _switch(before)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
    ) -> Iterator[None]:
        if fixturedef.scope == "function" or _is_of_pytest(fixturedef):
            return (yield)
        name = _fixture_id(fixturedef, getattr(request, "param_index", 0))
        before, started = _switch(f"fixture {name}"), time.monotonic()
        try:
            return (yield)
        finally:
            _switch(before)
            self._setup_seconds[name] = time.monotonic() - started

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        if call.when == "teardown":
            # No public interface tells which fixtures a test has really used.
            used = getattr(getattr(item, "_request", None), "_fixture_defs", {})
            indices = getattr(getattr(item, "callspec", None), "indices", {})
            told = {
                "fixtures": sorted(
                    _fixture_id(fixture, indices.get(name, 0))
                    for name, fixture in used.items()
                    if fixture.scope != "function" and not _is_of_pytest(fixture)
                ),
                "set up": self._setup_seconds,
            }
            item.user_properties.append(("planted faults", json.dumps(told)))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self._tests.setdefault(report.nodeid, {"seconds": 0.0, "passed": True})
        if report.outcome != "passed":
            test["passed"] = False
        if report.when != "teardown":
            test["seconds"] += report.duration
            return
        properties = dict(report.user_properties)
        told = json.loads(str(properties["planted faults"]))
        test["size"] = properties.get("size", "test")
        test["fixtures"] = told["fixtures"]
        test["seconds"] = max(0.0, test["seconds"] - sum(told["set up"].values()))
        self._fixture_seconds |= told["set up"]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not hasattr(session.config, "workerinput"):
            recorded = {"tests": self._tests, "fixtures": self._fixture_seconds}
            _WRITTEN.write_text(json.dumps(recorded), "utf-8")

    def _clear_caches(self) -> None:
        if len(sys.modules) != self._modules:
            self._modules = len(sys.modules)
            self._caches = list(_caches())
        for cache in self._caches:
            cache.cache_clear()


def _caches() -> Iterator[Any]:
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in _PACKAGES:
            held = list(vars(module).values())
            for value in held + [each for one in held for each in _attributes(one)]:
                if isinstance(value, functools._lru_cache_wrapper):
                    yield value


def _attributes(value: Any) -> list[Any]:
    return list(vars(value).values()) if isinstance(value, type) else []


def pytest_configure(config: pytest.Config) -> None:
    """Registers the recording."""
    config.pluginmanager.register(_Recording(), "planted faults recording")
