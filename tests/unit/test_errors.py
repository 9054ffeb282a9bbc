"""Problems as text and as data."""

from dataclasses import replace
from pathlib import PurePosixPath

import pytest

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, dotted, nearest, relative


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
