"""Three sizes of a run: `make test`, `make test-all` and `make test-deep`.

A test belongs to the smallest size that runs it. A test without a marker belongs to "test";
`@pytest.mark.size("all")` and the marker of a group (see `tests/support/groups.py`) make it larger.
What a run leaves out it says in its last lines (see `tests/support/summary.py`).
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from tests.support import groups

SIZES = ("test", "all", "deep")


@dataclass
class LeftOut:
    """What one process of a run does not run: numbers of tests and modules by group or size.

    Modules could not even be imported. `before` is the number that the run before this one has run,
    with `--beyond`.
    """

    tests: Counter[str] = field(default_factory=Counter)
    modules: Counter[str] = field(default_factory=Counter)
    before: int = 0


left_out_key = pytest.StashKey[LeftOut]()


def pytest_addoption(parser: pytest.Parser) -> None:
    choice = parser.getgroup("sizes of a run")
    choice.addoption(
        "--size", choices=SIZES, default="all", help="the largest size of tests to run: %(default)s"
    )
    choice.addoption(
        "--beyond", choices=SIZES, help="leave out tests up to this size: another run has run them"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "size(name): the smallest size that runs a test: all, deep")
    for name, group in groups.GROUPS.items():
        config.addinivalue_line("markers", f"{name}: needs {group.needs}")
    config.stash[left_out_key] = LeftOut()
    largest = SIZES.index(config.getoption("--size"))
    groups.choose(lambda size: SIZES.index(size) <= largest)


def size_of(item: pytest.Item) -> int:
    """Returns the index in SIZES of a test's size: the largest of its markers."""
    named = [marker.args[0] for marker in item.iter_markers("size")]
    named += [groups.GROUPS[name].size for name in groups.of(item)]
    return max(map(SIZES.index, named), default=0)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Iterator[None]:
    report: pytest.CollectReport = yield  # type: ignore[misc, assignment]
    call = report.__dict__.get("call")
    if call and call.excinfo and isinstance(call.excinfo.value, groups.LeftOutError):
        collector.config.stash[left_out_key].modules[call.excinfo.value.group] += 1
        report.outcome, report.longrepr, report.result = "passed", None, []
        report.__dict__["call"] = None
    return report  # type: ignore[return-value]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    largest = SIZES.index(config.getoption("--size"))
    beyond = config.getoption("--beyond")
    smallest = SIZES.index(beyond) + 1 if beyond else 0
    left_out = config.stash[left_out_key]
    chosen, others = [], []
    for item in items:
        size = size_of(item)
        # A test in several groups is counted once, in the first that is missing.
        reason = groups.first_missing(item) or (SIZES[size] if size > largest else None)
        if reason:
            left_out.tests[reason] += 1
        elif size < smallest:
            left_out.before += 1
        else:
            item.user_properties.append(("size", SIZES[size]))
            item.user_properties += [("group", name) for name in groups.of(item)]
            chosen.append(item)
            continue
        others.append(item)
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = chosen
