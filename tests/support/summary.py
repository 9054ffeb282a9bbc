"""The last lines of a run: each group that was left out, its tests, why, and its last result.

In CI a group that belongs to the run and is not on the machine fails the run, and so does a skipped
test; a group that cannot be had there (`SLIPWAY_NOT_TO_BE_HAD`) passes.
"""

import json
import os
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support import groups
from tests.support.sizes import LeftOut, left_out_key

# The last result of each group and size; `--record-results` writes it.
RESULTS = Path(__file__).parents[1] / "results.json"

HOW = {"all": "make test-all", "deep": "make test-deep"}

# Options that choose some of the tests, or end a run before the last one.
PART_OF_A_RUN = (
    "-k", "-m", "--beyond", "--deselect", "--ignore", "--ignore-glob", "--last-failed", "--maxfail",
    "--stepwise", "--collect-only",
)  # fmt: skip

_outcomes_key = pytest.StashKey[dict[str, Counter[str]]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--record-results",
        action="store_true",
        help=f"write how each group of tests ended to tests/{RESULTS.name}; whole deep runs only",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--record-results") and (limits := _limits(config)):
        raise pytest.UsageError(
            f"--record-results writes the results of whole groups, and {', '.join(limits)} may "
            "leave out some of their tests; `make test-deep` runs them all"
        )
    config.stash[_outcomes_key] = {}
    config.pluginmanager.register(_Counting(config), "slipway counting")
    if config.pluginmanager.hasplugin("xdist"):
        config.pluginmanager.register(_Workers(config), "slipway workers")


def _limits(config: pytest.Config) -> list[str]:
    """Returns what on the command line may leave out tests of a group, or end the run early."""
    if hasattr(config, "workerinput"):
        return []  # The process that started the worker has looked at its command line.
    paths = config.args if config.args_source == config.ArgsSource.ARGS else []
    size = config.getoption("--size")
    sizes = [] if size == "deep" else [f"--size {size}"]
    return [*sizes, *paths, *(name for name in PART_OF_A_RUN if config.getoption(name, None))]


class _Counting:
    """Counts how the tests of each group and size ended; one in two groups counts in both."""

    def __init__(self, config: pytest.Config) -> None:
        self._outcomes = config.stash[_outcomes_key]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or report.outcome != "passed":
            told = report.user_properties
            size = dict(told).get("size", "test")
            # Not from its keywords: these have the names of its folders too.
            of_groups = [str(value) for name, value in told if name == "group"]
            for name in of_groups or [str(size)]:
                self._outcomes.setdefault(name, Counter())[report.outcome] += 1


class _Workers:
    """Brings what a worker left out to the process that prints it; every worker says the same."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        told = getattr(node, "workeroutput", {}).get("left_out")
        if told:
            tests, modules, before = told
            self._config.stash[left_out_key] = LeftOut(Counter(tests), Counter(modules), before)


def pytest_sessionfinish(session: pytest.Session) -> None:
    config = session.config
    left_out = config.stash[left_out_key]
    if hasattr(config, "workeroutput"):
        config.workeroutput["left_out"] = (
            dict(left_out.tests),
            dict(left_out.modules),
            left_out.before,
        )
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter is not None and reporter.stats.get("skipped")
    if os.environ.get("CI") and (skipped or _not_excused(left_out)):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    ended = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if config.getoption("--record-results") and ended:
        _record(config.stash[_outcomes_key])


def _not_excused(left_out: LeftOut) -> list[str]:
    """Returns the groups that this run should have had, and has tests of, without an excuse."""
    excused = groups.not_to_be_had(os.environ)
    return [
        name
        for name in groups.missing_here()
        if name not in excused and (left_out.tests[name] or left_out.modules[name])
    ]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> Iterator[None]:
    result = yield
    lines = list(_lines(config.stash[left_out_key], _last_results()))
    if lines:
        terminalreporter.section("left out of this run", sep="-")
    for line in lines:
        terminalreporter.line(line)
    not_excused = _not_excused(config.stash[left_out_key])
    if os.environ.get("CI") and not_excused:
        terminalreporter.line(
            f"This is CI, and what it needs could be had: {', '.join(not_excused)}", red=True
        )
    return result


def _lines(left_out: LeftOut, last_results: dict[str, dict[str, Any]]) -> Iterator[str]:
    missing = groups.missing_here()
    if left_out.before:
        yield f"{left_out.before} tests of the smaller sizes: another run has run them."
    for name in (*groups.GROUPS, *HOW):
        tests, modules = left_out.tests[name], left_out.modules[name]
        if not tests and not modules:
            continue
        last = last_results.get(name)
        parts = [f"{tests} tests"] if tests else []
        if modules:
            known = f", {last['tests']} tests when they ran last" if last else ""
            parts.append(f"{modules} files{known}")
        yield f"{name}: {' and '.join(parts)}: {_why(name, missing.get(name, ''))}"
        if last:
            yield (
                f"    last result: {last['outcome']} on {last['date']}, "
                f"commit {last['commit']}, {last['machine']}"
            )
        else:
            yield "    last result: none is committed"


def _why(name: str, reason: str) -> str:
    if name in HOW:
        return f"`{HOW[name]}` runs them"
    group = groups.GROUPS[name]
    if reason:
        return f"{reason}; `{group.install}` brings it"
    return f"`{HOW[group.size]}` runs them, after `{group.install}`"


def _last_results() -> dict[str, dict[str, Any]]:
    results: dict[str, dict[str, Any]] = json.loads(RESULTS.read_text("utf-8"))
    return results


def _record(outcomes: dict[str, Counter[str]]) -> None:
    results = _last_results()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude", "*"],
        capture_output=True, text=True, check=True, cwd=Path(__file__).parent,
    ).stdout.strip()  # fmt: skip
    for name, counts in outcomes.items():
        results[name] = {
            "tests": counts.total(),
            "outcome": ", ".join(f"{counts[each]} {each}" for each in sorted(counts)),
            "date": time.strftime("%Y-%m-%d", time.gmtime()),
            "commit": commit,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, "
            f"Python {platform.python_version()}",
        }
    RESULTS.write_text(json.dumps(results, indent=2, sort_keys=True) + "\n", "utf-8")
