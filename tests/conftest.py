"""Options of the whole test run."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from embedded_aws.hosting.djl_serving import NotInstalledError, find_java, server_homes

# A shell starts what runs in its background with SIGINT ignored, and the programs that tests
# interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# `pytest --hypothesis-profile=quick`: tests that send thousands of requests send hundreds.
settings.register_profile("quick", settings.get_profile("default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew; review the diff"
    )
    parser.addoption("--fail-on-skip", action="store_true", help="fail where a test was skipped")


VLLM = Path(__file__).parents[1] / "build" / "vllm" / ".ready"


def _leaves_vllm_out(config: pytest.Config) -> bool:
    """Whether tests of vLLM itself are not meant: its 7 GB are brought on request alone."""
    return not VLLM.exists() and "vllm" not in config.option.markexpr


def _leaves_djl_serving_out(config: pytest.Config) -> bool:
    """Whether tests of the real DJL Serving are not meant, on a machine that has none.

    They are not skipped: a machine that reaches package registries alone cannot get its sources.
    """
    return bool(_what_djl_serving_lacks()) and "djl_serving" not in config.option.markexpr


def _what_djl_serving_lacks() -> str:
    if not server_homes(os.environ):
        return "it is in no package registry, and `make djl-serving` has not built it here"
    try:
        find_java(os.environ)
    except NotInstalledError as error:
        return str(error)
    return ""


def pytest_report_header(config: pytest.Config) -> list[str]:
    told = []
    if _leaves_djl_serving_out(config):
        why = _what_djl_serving_lacks()
        told.append(f"djl_serving: left out: {why} (docs/embedded-aws/lmi.md says more)")
    if _leaves_vllm_out(config):
        told.append("vllm: left out: `make vllm` has not brought it (7 GB)")
    return told


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    names = [
        name
        for name, leaves_out in (
            ("djl_serving", _leaves_djl_serving_out(config)),
            ("vllm", _leaves_vllm_out(config)),
        )
        if leaves_out
    ]
    left_out = [item for item in items if any(map(item.get_closest_marker, names))]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if session.config.getoption("--fail-on-skip") and skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
