"""Planting faults: the places, the choice, and the order of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.planted_faults import PlantedFaultsError, reports
from tools.planted_faults.__main__ import main
from tools.planted_faults.faults import choose
from tools.planted_faults.places import is_valid, places, plant
from tools.planted_faults.planting import in_order, that_fit
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


def test_the_seed_alone_chooses_and_every_package_has_its_share(tmp_path: Path) -> None:
    many = "".join(f"def f{n}(x):\n    return x == {n}\n\n\n" for n in range(60))
    few = "".join(f"def g{n}(x):\n    return x < {n}\n\n\n" for n in range(20))
    for name, text in {"slipway/a.py": many, "stacks/b.py": few, "tools/c.py": many}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
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
