"""What a run of each size has, and what its last lines say of the rest."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support import groups, summary

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
CONFTEST = """
pytest_plugins = ["tests.support.sizes", "tests.support.starts", "tests.support.summary"]

import pytest
from tests.support import groups

@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    def group(size, lacks):
        return groups.Group(needs="a thing", size=size, install="make thing", lacks=lambda: lacks)

    groups.GROUPS = {
        "here": group("all", ""),
        "absent": group("all", "no thing on this machine"),
        "large": group("deep", ""),
    }
"""
TESTS = """
import pytest

def test_plain(): pass

@pytest.mark.size("all")
def test_long(): pass

@pytest.mark.size("deep")
def test_longest(): pass

@pytest.mark.here
def test_here(): pass

@pytest.mark.absent
@pytest.mark.parametrize("number", range(3))
def test_absent(number): pass

@pytest.mark.large
def test_large(): pass
"""
MODULE = """
import pytest
from tests.support.groups import load

json = load("json", group="{group}")
pytestmark = pytest.mark.{group}

def test_json(): assert json.loads("1") == 1
"""

ABSENT = "absent: 3 tests: no thing on this machine; `make thing` brings it"

Run = Callable[..., pytest.RunResult]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    pytester.makeconftest(CONFTEST)
    pytester.makeini("[pytest]\naddopts = -p no:randomly --strict-markers")
    pytester.makepyfile(test_sizes_of_it=TESTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    # The run inside this run settles its own groups.
    monkeypatch.setattr(groups, "GROUPS", groups.GROUPS)
    monkeypatch.setattr(groups, "_left_out", {})

    def run(*arguments: str, ci: str = "", not_to_be_had: str = "") -> pytest.RunResult:
        monkeypatch.setenv("CI", ci)
        monkeypatch.setenv(groups.NOT_TO_BE_HAD_VARIABLE, not_to_be_had)
        return pytester.runpytest_inprocess(*arguments)

    return run


def test_the_small_run_names_what_it_leaves_out(run: Run) -> None:
    result = run("--size", "test")
    assert result.ret == 0
    *_, title, here, _, absent, _, large, _, all_, _, deep, _, closing = filter(
        None, result.outlines
    )
    assert " left out of this run " in title
    assert here == "here: 1 tests: `make test-all` runs them, after `make thing`"
    assert absent == "absent: 3 tests: `make test-all` runs them, after `make thing`"
    assert large == "large: 1 tests: `make test-deep` runs them, after `make thing`"
    assert all_ == "all: 1 tests: `make test-all` runs them"
    assert deep == "deep: 1 tests: `make test-deep` runs them"
    assert "1 passed, 7 deselected" in closing


@pytest.mark.parametrize(
    ("size", "options", "status", "said"),
    [
        ("all", {}, 0, ["3 passed", ABSENT]),
        ("deep", {}, 0, ["5 passed, 3 deselected"]),
        # In CI, what could be had and is not there fails the run, unless a larger one has it.
        ("all", {"ci": "true"}, 1, ["This is CI, and what it needs could be had: absent"]),
        ("all", {"ci": "true", "not_to_be_had": "absent,other"}, 0, [ABSENT]),
        ("test", {"ci": "true"}, 0, ["1 passed"]),
    ],
)
def test_a_run_has_what_is_there(
    run: Run, size: str, options: dict[str, str], status: int, said: list[str]
) -> None:
    result = run("--size", size, **options)
    assert result.ret == status
    assert [each for each in said if each not in result.stdout.str()] == []


def test_the_larger_run_has_the_rest_of_it(run: Run) -> None:
    result = run("--size", "all", "--beyond", "test")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["1 tests of the smaller sizes: another run has run them.", ABSENT, "*2 passed, 6 desel*"]
    )


@pytest.mark.size("all")
def test_workers_leave_out_the_same(run: Run) -> None:
    result = run("--size", "all", "-n", "2")
    assert result.ret == 0
    result.stdout.fnmatch_lines([ABSENT, "*3 passed*"])


def test_in_ci_a_skipped_test_fails_the_run(run: Run, pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_skips="import pytest\ndef test_it(): pytest.skip('why')")
    assert run("--size", "test").ret == 0
    assert run("--size", "test", ci="true").ret == 1


@pytest.mark.parametrize(("group", "said"), [("absent", "no thing on this machine"), ("here", "")])
def test_a_module_is_imported_where_its_group_is_there(
    run: Run, pytester: pytest.Pytester, group: str, said: str
) -> None:
    pytester.makepyfile(test_module=MODULE.format(group=group))
    result = run("--size", "all", "test_module.py")
    assert result.ret == (5 if said else 0)  # 5: no tests were run
    assert (f"{group}: 1 files: {said}" in result.stdout.str()) == bool(said)


def test_a_module_that_is_there_and_broken_fails(run: Run, pytester: pytest.Pytester) -> None:
    broken = MODULE.format(group="here").replace('load("json"', 'load("no_such_module"')
    pytester.makepyfile(test_module=broken)
    result = run("--size", "all", "test_module.py")
    assert result.ret == 2
    assert "No module named 'no_such_module'" in result.stdout.str()


@pytest.fixture
def results(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of results of which each says that it is an earlier one."""
    earlier = {"tests": 9, "outcome": "earlier", "date": "", "commit": "", "machine": ""}
    path = pytester.path / "results.json"
    path.write_text(json.dumps({"absent": earlier, "here": earlier}), "utf-8")
    monkeypatch.setattr(summary, "RESULTS", path)
    return path


def test_a_whole_deep_run_records_how_each_group_ended(
    run: Run, results: Path, pytester: pytest.Pytester
) -> None:
    pytester.makepyfile(test_fails="def test_it(): assert False")
    both = "import pytest\n@pytest.mark.here\n@pytest.mark.large\ndef test_it(): pass"
    pytester.makepyfile(test_both=both)
    # A folder that is called as a group is none.
    pytester.mkdir("large").joinpath("test_large.py").write_text("def test_it(): pass", "utf-8")
    assert run("--size", "deep", "--record-results").ret == 1
    recorded = json.loads(results.read_text("utf-8"))
    assert {name: each["outcome"] for name, each in recorded.items()} == {
        "absent": "earlier",
        "all": "1 passed",
        "deep": "1 passed",
        "here": "2 passed",
        "large": "2 passed",
        "test": "1 failed, 2 passed",
    }


@pytest.mark.parametrize(
    "part",
    [
        ["--size", "all"],
        ["--size", "deep", "test_sizes_of_it.py"],
        ["--size", "deep", "-k", "here"],
        ["--size", "deep", "-m", "here"],
        ["--size", "deep", "--beyond", "all"],
        ["--size", "deep", "-x"],
        ["--size", "deep", "--deselect", "test_sizes_of_it.py::test_here"],
    ],
    ids=lambda part: part[-1].partition("::")[0],
)
def test_a_part_of_a_run_records_nothing(run: Run, results: Path, part: list[str]) -> None:
    before = results.read_bytes()
    result = run(*part, "--record-results")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "`make test-deep` runs them all" in result.stderr.str()
    assert results.read_bytes() == before


def test_a_run_that_ends_early_records_nothing(
    run: Run, results: Path, pytester: pytest.Pytester
) -> None:
    before = results.read_bytes()
    pytester.makepyfile(test_ends="import pytest\ndef test_it(): pytest.exit('enough')")
    assert run("--size", "deep", "--record-results").ret == pytest.ExitCode.INTERRUPTED
    assert results.read_bytes() == before
