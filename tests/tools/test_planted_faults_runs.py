"""Planting faults: whole runs over a small project."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.planted_faults import copies, reports
from tools.planted_faults.__main__ import main
from tools.planted_faults.copies import Copy
from tools.planted_faults.faults import Fault, source_files
from tools.planted_faults.places import places
from tools.planted_faults.recording import Recording

PROJECT = {
    "slipway/__init__.py": "",
    "slipway/cli/main.py": """\
import slipway


def main():
    print(slipway.__file__)
""",
    "slipway/limits.py": "LONGEST = 3\n",
    "slipway/price.py": """\
import functools


@functools.cache
def base():
    return 10


def price(count):
    if count > 5:
        return base() * count - 1
    return base() * count


def is_short(name):
    from slipway.limits import LONGEST
    return len(name) <= LONGEST


def unused(count):
    return count == 1


def ignored(count):
    return count == 2


def described(count):
    return "dear" if count == 3 else "cheap"
""",
    "slipway/__main__.py": """\
import sys

from slipway.price import described

print(described(int(sys.argv[1])))
""",
    "tests/conftest.py": """\
def pytest_addoption(parser):
    parser.addoption("--size")


def pytest_collection_modifyitems(items):
    for item in items:
        item.user_properties.append(("size", "all" if "large" in item.name else "test"))
""",
    "tests/test_price.py": """\
import subprocess
import sys

import pytest

from slipway import price


@pytest.fixture(scope="module")
def six():
    return price.price(6)


def test_nothing_of_the_price():
    assert price.ignored(1) in (True, False)


def test_broken():
    assert price.ignored(2) == 3


@pytest.mark.parametrize("count", [1, 5])
def test_price(count):
    assert price.price(count) == count * 10


def test_with_the_fixture(six):
    pass


def test_also_with_the_fixture(six):
    assert six == 59


def test_names():
    assert price.is_short("abc")
    assert not price.is_short("abcd")


def test_large(tmp_path):
    command = [sys.executable, "-m", "slipway", "3"]
    told = subprocess.run(command, cwd=tmp_path, env={**__import__("os").environ},
                          capture_output=True, text=True, check=True)
    assert told.stdout == "dear\\n"
""",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("planted") / "project"
    for name, text in PROJECT.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    with pytest.MonkeyPatch.context() as patch:
        # The small project has no use of hypothesis, whose import takes longer than its tests.
        options = (*copies.PYTEST_OPTIONS[:-1], "-p", "no:hypothesispytest")
        patch.setattr(copies, "PYTEST_OPTIONS", options)
        yield root


@pytest.fixture(scope="module")
def recorded(project: Path) -> Path:
    assert (
        main(["record", "--size", "all", "--", "-n", "0", "-q", "--tb=no", "tests"], project) == 0
    )
    return project


@pytest.mark.size("all")
def test_programs_of_a_copy_import_the_copy(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(project))
    program = "import slipway; print(slipway.__file__)"
    with Copy(project) as copy:
        expected = f"{copy.project}/slipway/__init__.py\n"
        assert not str(copy.project).startswith(str(project))
        nested = f"import subprocess, sys; subprocess.run([sys.executable, '-Ic', {program!r}])"
        for code in (program, nested, "import os; os.system('slipway')"):
            assert copy.run("-c", code, variables={}, output=tmp_path / "said") == 0
            assert (tmp_path / "said").read_text() == expected
        with copy.changed("slipway/__init__.py", b"x = 1\n", 1):
            assert (copy.project / "slipway/__init__.py").read_bytes() == b"x = 1\n"
        assert (copy.project / "slipway/__init__.py").read_bytes() == b""
        left = "import os, subprocess; subprocess.Popen(['sleep', '61'], start_new_session=True)"
        assert copy.run("-c", left, variables={}, output=tmp_path / "said") == 0
        assert not [
            folder
            for folder in Path("/proc").glob("[0-9]*")
            if b"sleep\x0061" in (folder / "cmdline").read_bytes()
            and (folder / "cwd").readlink() == copy.project
        ]
        assert copy.run("-c", "import time; time.sleep(60)", variables={}, seconds=0.2) is None
    assert not copy.project.exists()


def executing(root: Path, size: str) -> dict[tuple[str, int, str], list[str] | None]:
    """The tests that a recording names for every place of the small project."""
    recording = Recording(root, root / "build" / "planted_faults" / "coverage", size)
    found = {}
    for file in source_files(root, ["slipway"]):
        for place in places((root / file).read_bytes()):
            tests = recording.tests_of(Fault(file, place.line, place))
            names = tests and [test.name.partition("::")[2] for test in tests]
            found[Path(file).name, place.line, place.change] = names
    return found


@pytest.mark.size("all")
def test_a_recording_knows_the_tests_of_each_line(recorded: Path) -> None:
    # Which test fills the cache does not matter, nor which is the fixture's first user.
    cheap = [
        "test_also_with_the_fixture", "test_price[1]", "test_price[5]", "test_with_the_fixture",
    ]  # fmt: skip
    dear = ["test_also_with_the_fixture", "test_with_the_fixture"]
    assert executing(recorded, "test") == {
        ("__main__.py", 5, "print(described(int(sys.argv[1]))) left out"): None,
        ("__main__.py", 5, "1 becomes 2"): None,
        ("limits.py", 1, "3 becomes 4"): ["test_names"],
        ("main.py", 5, "print(slipway.__file__) left out"): None,
        ("price.py", 6, "10 becomes 11"): cheap,
        ("price.py", 10, "count > 5 negated"): cheap,
        ("price.py", 10, "> becomes >="): cheap,
        ("price.py", 10, "5 becomes 6"): cheap,
        ("price.py", 11, "1 becomes 2"): dear,
        ("price.py", 17, "<= becomes <"): ["test_names"],
        ("price.py", 21, "== becomes !="): None,
        ("price.py", 21, "1 becomes 2"): None,
        # The test that failed when it was recorded would notice anything.
        ("price.py", 25, "== becomes !="): ["test_nothing_of_the_price"],
        ("price.py", 25, "2 becomes 3"): ["test_nothing_of_the_price"],
        ("price.py", 29, "count == 3 negated"): None,
        ("price.py", 29, "== becomes !="): None,
        ("price.py", 29, "3 becomes 4"): None,
    }
    more = executing(recorded, "all")
    assert more["price.py", 29, "3 becomes 4"] == ["test_large"]
    assert more["__main__.py", 5, "1 becomes 2"] == ["test_large"]


@pytest.mark.size("all")
def test_a_run_says_what_the_tests_notice(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in recorded.rglob("*.py")}
    assert main(["--seed", "3", "--faults", "6", "--json"], recorded) == 0
    assert before == {path: path.read_bytes() for path in recorded.rglob("*.py")}
    told = capsys.readouterr()
    rows: list[dict[str, Any]] = json.loads(told.out)["faults"]
    outcomes = [re.sub(r" in \d+ s$|; \d+ minutes$", "", line) for line in reports.table(rows)]
    left_out = "print(described(int(sys.argv[1]))) left out"
    assert outcomes == [
        f"slipway/__main__.py:5  {left_out}  noticed by tests/test_price.py::test_large",
        f"slipway/limits.py:1    {'3 becomes 4':43}  noticed by tests/test_price.py::test_names",
        f"slipway/price.py:6     {'10 becomes 11':43}  noticed by {rows[2]['test']}",
        f"slipway/price.py:10    {'5 becomes 6':43}  "
        "noticed by tests/test_price.py::test_also_with_the_fixture",
        f"slipway/price.py:21    {'1 becomes 2':43}  not executed",
        f"slipway/price.py:25    {'2 becomes 3':43}  not noticed: 1 tests passed",
        "6 faults: 4 noticed, 1 not noticed, 1 not executed, 0 over time",
    ]
    # Two tests notice this fault. The cheaper one runs first, and their times differ by run.
    assert rows[2]["test"].partition("[")[0] in {
        "tests/test_price.py::test_price",
        "tests/test_price.py::test_also_with_the_fixture",
    }
    assert "6 faults; 7 tests are recorded" in told.err
    assert "4 of 6: slipway/price.py:10: 5 becomes 6" in told.err


@pytest.mark.size("all")
def test_coverage_is_told_by_package(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage"], recorded) == 0
    assert (
        capsys.readouterr().out
        == """\
package                    lines             branches
slipway         20 of    21  95%      2 of     2 100%
slipway.cli      0 of     3   0%                    -
all             20 of    24  83%      2 of     2 100%
"""
    )
    assert main(["coverage", "--json"], recorded) == 0
    assert json.loads(capsys.readouterr().out)["slipway.cli"] == {
        "lines": 3, "lines_executed": 0, "branches": 0, "branches_executed": 0,
    }  # fmt: skip


@pytest.mark.size("all")
def test_tests_that_do_not_fit_the_time_are_counted(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--seed", "1", "--faults", "1", "--within", "slipway/limits.py")
    assert main([*options, "--minutes-per-fault", "0"], recorded) == 0
    assert capsys.readouterr().out == (
        "slipway/limits.py:1  3 becomes 4  over time: 0 of 1 tests passed in 0 s\n"
        "1 faults: 0 noticed, 0 not noticed, 0 not executed, 1 over time; 0 minutes\n"
    )
