"""Problems as text and data: each code is used, and has a section that `slipway explain` prints."""

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest

import slipway
from slipway.codes.code import Code
from slipway.codes.table import entries, nearest_codes
from slipway.errors import Kind, Location, Problem, UserError, dotted, nearest, relative

ROOT = Path(slipway.__file__).parents[1]
PAGE = ROOT / "docs" / "troubleshooting.md"


@pytest.fixture
def run(slipway_command):
    return slipway_command.of("explain")


def test_the_page_shows_what_the_command_prints_and_all_are_listed(run):
    page = PAGE.read_text("utf-8")
    output = run.done("SW201")
    assert f"$ slipway explain SW201\n{output}```" in page
    lines = run()[1].splitlines()
    assert len(lines) == len(Code)
    assert lines[0] == "SW101  The file cannot be read"


@pytest.mark.parametrize("text", ["SW201", "sw201", "201", "[SW201]"])
def test_a_code_is_known_however_it_is_written(run, text):
    assert run(text)[1].startswith("SW201: The instance type is not known\n")


def test_entries_as_json(run):
    documents = json.loads(run("--json")[1])
    assert [document["code"] for document in documents] == sorted(Code)
    for document in documents:
        for named in re.findall(r"\((docs/[^)#]*)", document["cause"] + document["remedy"]):
            assert (ROOT / named).is_file(), document
    code, output, _ = run("SW504", "--json")
    entry = entries()[Code.EMBEDDED_AWS_NOT_RUNNING]
    assert code == 0
    assert json.loads(output) == {
        "code": "SW504",
        "title": entry.title,
        "cause": entry.cause,
        "remedy": entry.remedy,
        "page": "docs/troubleshooting.md",
    }


def test_an_unknown_code_ends_with_1_and_the_nearest(run):
    errors = run.refused("SW279")
    assert errors == (
        "1 problem\n- there is no problem with the code 'SW279' [SW416]\n"
        "    The nearest codes are SW290, SW291, SW292. `slipway explain` lists all codes.\n"
    )
    assert json.loads(run("SW279", "--json")[1])["problems"][0]["code"] == "SW416"


@pytest.fixture(scope="module")
def trees():
    """Where problems are made; the enumeration itself is no call site."""
    found = [ROOT / "app.py"]
    for folder in ("slipway", "stacks", "tools"):
        found += sorted((ROOT / folder).rglob("*.py"))
    codes = ROOT / "slipway" / "codes"
    return {path: ast.parse(path.read_text("utf-8")) for path in found if codes not in path.parents}


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Yields the names of `Code.NAME`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id == "Code":
            yield node.attr


def test_entries_are_short_and_whole_and_each_has_its_section():
    headings = re.findall(r"(?m)^#+ (SW.*)$", PAGE.read_text("utf-8"))
    assert headings == [f"{entry.code}: {entry.title}" for entry in entries().values()]
    assert list(entries()) == sorted(Code)
    assert len(Code) > 100
    assert all(re.fullmatch(r"SW[1-9]\d\d", code) for code in Code)
    for entry in entries().values():
        assert len(entry.title.split()) <= 8, entry
        assert not entry.title.endswith("."), entry
        for text in (entry.cause, entry.remedy):
            assert text.endswith("."), entry
            assert len(text.split()) <= 50, entry
            assert "](" not in text, entry


def test_every_code_is_used_and_no_call_site_writes_a_number(trees):
    used = {name for tree in trees.values() for name in codes_in(tree)}
    assert used - set(Code.__members__) == set()
    assert set(Code.__members__) - used == set()
    written = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"SW\d{3}", node.value)
    ]
    assert written == []


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SW200", ["SW201", "SW202", "SW203"]),
        ("20", ["SW201", "SW202", "SW203"]),
        ("999999", ["SW872", "SW870", "SW863"]),
        ("unknown field", ["SW106"]),
        ("", []),
    ],
)
def test_a_wrong_code_has_near_ones(text, codes):
    assert nearest_codes(text)[: len(codes) or None] == codes


def test_a_problem_reads_place_field_message_code_remedy():
    problem = Problem(
        Code.OUT_OF_RANGE, Kind.VALUE, "5 is odd", "Use 6.", ("a", 0, "b"), Location("f.yaml", 3, 7)
    )
    assert str(problem) == "f.yaml:3:7: a[0].b: 5 is odd [SW203]\n    Use 6."
    gone = Problem(Code.NO_FILES, Kind.STATE, "gone", "Look.")
    assert str(gone) == "gone [SW601]\n    Look."
    quoting = replace(gone, message="ended; its log:\n      a line")
    assert str(quoting) == "ended; its log: [SW601]\n      a line\n    Look."
    assert problem.as_json() == {
        "code": "SW203",
        "kind": "value",
        "file": "f.yaml",
        "line": 3,
        "column": 7,
        "field": "a[0].b",
        "message": "5 is odd",
        "remedy": "Use 6.",
    }
    without_place = gone.as_json()
    assert {key for key, value in without_place.items() if value is None} == {
        "file", "line", "column", "field",
    }  # fmt: skip


def test_a_report_counts_and_shows_fields_and_paths():
    one = UserError.of(Code.NO_FILES, "a", "b")
    assert str(one) == "1 problem\n- a [SW601]\n    b"
    two = UserError([*one.problems, *one.problems])
    assert str(two).startswith("2 problems\n- a [SW601]\n    b\n- a")
    with pytest.raises(ValueError, match="needs a problem"):
        UserError([])
    assert dotted(("endpoint", "instances", 0)) == "endpoint.instances[0]"
    assert dotted(()) == ""
    assert nearest("instnce", ["instance", "volume"]) == "instance"
    assert nearest("zzz", ["instance", "volume"]) is None
    root = PurePosixPath("/p")
    assert relative(PurePosixPath("/p/a/b"), root) == "a/b"
    assert relative(PurePosixPath("/q/a"), root) == "/q/a"
