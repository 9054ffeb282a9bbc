"""Options of the whole test run."""

from __future__ import annotations

import pytest
from hypothesis import settings

# `pytest --hypothesis-profile=quick`: tests that send thousands of requests send hundreds.
settings.register_profile("quick", settings.get_profile("default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )
    parser.addoption("--fail-on-skip", action="store_true", help="fail where a test was skipped")


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if session.config.getoption("--fail-on-skip") and skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
