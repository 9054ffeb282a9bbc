"""Planting faults: the places, the choice, and whole runs over a small project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.planted_faults import PlantedFaultsError, copies, reports
from tools.planted_faults.__main__ import main
from tools.planted_faults.copies import Copy
from tools.planted_faults.faults import Fault, choose, source_files
from tools.planted_faults.places import is_valid, places, plant
from tools.planted_faults.planting import in_order, that_fit
from tools.planted_faults.recording import Recording
from tools.planted_faults.recording import Test as Recorded

SOURCE = '''\
"""A docstring with 1 number."""

from typing import TYPE_CHECKING

import logging

if TYPE_CHECKING:
    LIMIT: int = 4

__all__ = ["f"]
REGION = "us-east-1"
COUNTS = {"é": 3, "b": True}


class Bench:
    size: int = 7

    def fits(self, other: "Bench", slack: int = 0, unit="GB") -> bool:
        """Says so, at 100 %."""
        logging.info("asked %d times", 2)
        if not other:
            self.refuse(
                other,
                reason="none",
            )
        text = f"{self.size > 3}"
        found = [each for each in text if each not in unit and each]
        return (
            self.size  # the larger one
            < other.size + slack
        ) and "é" is not text


if __name__ == "__main__":
    print(1)
'''

CHANGES = [
    (11, "constant", '"us-east-1" becomes "us-east-1_"'),
    (12, "constant", "3 becomes 4"),
    (12, "constant", "True becomes False"),
    (16, "constant", "7 becomes 8"),
    (18, "constant", "0 becomes 1"),
    (18, "constant", '"GB" becomes "GB_"'),
    (21, "condition", "not other negated"),
    (22, "call", 'self.refuse( other, reason="none", ) left out'),
    (27, "condition", "each not in unit and each negated"),
    (27, "comparison", "not in becomes in"),
    (31, "comparison", "is not becomes is"),
]


def test_places_are_in_what_runs_and_not_in_texts_or_types() -> None:
    found = places(SOURCE.encode())
    assert [(place.line, place.kind, place.change) for place in found] == CHANGES


def test_a_fault_changes_its_place_and_no_line_number() -> None:
    source = SOURCE.encode()
    for place in places(source):
        assert is_valid(source, place)
        planted = plant(source, place).decode().splitlines()
        changed = [
            number
            for number, (old, new) in enumerate(zip(SOURCE.splitlines(), planted, strict=True), 1)
            if old != new
        ]
        assert changed
        assert place.line == changed[0]
        assert changed[-1] <= place.last_line


def test_a_place_knows_its_statement() -> None:
    at = {(place.line, place.change): place for place in places(SOURCE.encode())}
    size = at[16, "7 becomes 8"]
    assert (size.names, size.at_import, list(size.lines)) == (("size", "Bench"), True, [16])
    slack = at[18, "0 becomes 1"]
    assert (slack.names, slack.at_import) == (("fits", "Bench"), True)
    inner = at[31, "is not becomes is"]
    assert (inner.names, inner.at_import) == (("fits", "Bench"), False)
    assert (inner.statement_line, list(inner.lines)) == (28, [28, 29, 30, 31])
    # Of a condition, what follows it is not its own.
    assert list(at[21, "not other negated"].lines) == [21]


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_the_seed_alone_chooses_and_every_package_has_its_share(tmp_path: Path) -> None:
    many = "".join(f"def f{n}(x):\n    return x == {n}\n\n\n" for n in range(60))
    few = "".join(f"def g{n}(x):\n    return x < {n}\n\n\n" for n in range(20))
    write(tmp_path, {"slipway/a.py": many, "stacks/b.py": few, "tools/c.py": many})
    chosen = choose(tmp_path, 7, 8)
    assert chosen == choose(tmp_path, 7, 8)
    assert chosen != choose(tmp_path, 8, 8)
    assert [fault.file for fault in chosen] == ["slipway/a.py"] * 6 + ["stacks/b.py"] * 2
    assert {fault.place.kind for fault in chosen} == {"comparison", "constant"}
    assert {fault.file for fault in choose(tmp_path, 7, 8, ["stacks"])} == {"stacks/b.py"}
    with pytest.raises(
        PlantedFaultsError, match=r"there are 80 lines for 81 faults: ask for fewer"
    ):
        choose(tmp_path, 7, 81)
    with pytest.raises(PlantedFaultsError, match="nowhere is neither a file nor a folder"):
        choose(tmp_path, 7, 1, ["nowhere"])


def test_cheap_tests_come_first_and_files_stay_together_in_a_tier() -> None:
    tests = [
        Recorded("a.py::slow", 5.0),
        Recorded("a.py::fast", 0.05),
        Recorded("b.py::fastest", 0.01),
        Recorded("b.py::fast", 0.07),
        Recorded("c.py::medium", 0.5),
    ]
    names = ["b.py::fastest", "b.py::fast", "a.py::fast", "c.py::medium", "a.py::slow"]
    assert [test.name for test in in_order(tests)] == names
    assert [test.name for test in that_fit(in_order(tests), 1.0)] == names[:4]
    assert that_fit([tests[0]], 1.0) == [tests[0]]
    assert that_fit(tests, 0.0) == []


ROW = {
    "file": "slipway/a.py", "line": 3, "at": 40, "kind": "comparison", "change": "< becomes <=",
    "outcome": "noticed", "test": "tests/test_a.py::test_it", "seconds": 2.2, "tests_run": 1,
    "tests": 4,
}  # fmt: skip


def test_two_runs_are_compared_by_their_faults() -> None:
    missed = ROW | {"outcome": "not noticed", "test": "", "tests_run": 4}
    other = ROW | {"line": 9, "at": 90}
    both = ROW | {"line": 5, "at": 60}
    assert list(reports.compare([ROW, both, other], [missed, both])) == [
        "Only the first noticed:",
        "  slipway/a.py:3  < becomes <=",
        "    noticed by tests/test_a.py::test_it in 2 s; "
        "the other run: not noticed: 4 tests passed in 2 s",
        "1 of the 3 faults of the first run are in it alone.",
        "2 faults: both noticed 1, only the first 1, only the second 0, neither 0",
    ]


def test_what_a_user_can_put_right_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([], tmp_path) == 1
    assert capsys.readouterr().err == "--seed says which faults: any number\n"
    assert main(["--seed", "1"], tmp_path) == 1
    assert capsys.readouterr().err == (
        f"there is no recording {tmp_path}/build/planted_faults/coverage: "
        "python -m tools.planted_faults record --size all -- -n 2\n"
    )
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")], tmp_path) == 1
    assert f"{tmp_path}/a is not what --json writes" in capsys.readouterr().err


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
    write(root, PROJECT)
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
    assert rows[2]["test"].startswith("tests/test_price.py::test_price[")
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
