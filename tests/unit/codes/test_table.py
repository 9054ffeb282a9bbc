"""Each code is used, explained, in its group's range, and on its page."""

import ast
import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import slipway
from slipway.codes.code import Code
from slipway.codes.table import GROUPS, entries, group_of, nearest_codes, number
from slipway.codes.text import plain
from tools.reference.codes import pages

ROOT = Path(slipway.__file__).parents[1]


@pytest.fixture(scope="module")
def trees() -> dict[Path, ast.AST]:
    """Where problems are made; the table itself is no call site."""
    found = [ROOT / "app.py"]
    for folder in ("slipway", "stacks", "tools"):
        found += sorted((ROOT / folder).rglob("*.py"))
    table = ROOT / "slipway" / "codes"
    return {path: ast.parse(path.read_text("utf-8")) for path in found if table not in path.parents}


def codes_in(tree: ast.AST) -> Iterator[str]:
    """Yields the names of `Code.NAME`."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)):
            continue
        if node.value.id == "Code":
            yield node.attr


def test_every_code_has_one_entry_and_every_entry_its_own_code():
    listed = [entry.code for group in GROUPS for entry in group.entries]
    assert sorted(listed) == sorted(Code)
    assert len(set(listed)) == len(listed)
    assert len(Code) > 100


def test_a_code_is_sw_and_three_digits_in_its_groups_range_and_order():
    for code in Code:
        assert re.fullmatch(r"SW[1-9]\d\d", code), code
    for group in GROUPS:
        numbers = [number(entry.code) for entry in group.entries]
        assert numbers == sorted(numbers), group.title
        assert group.first <= numbers[0] <= numbers[-1] <= group.last, group.title
    assert [each.first for each in GROUPS] == sorted(each.first for each in GROUPS)
    for one, other in itertools.pairwise(GROUPS):
        assert one.last < other.first


def test_a_code_is_found_in_its_group():
    for group in GROUPS:
        for entry in group.entries:
            assert group_of(entry.code) is group


def test_every_code_is_used_and_every_used_code_exists(trees):
    used = {name for tree in trees.values() for name in codes_in(tree)}
    assert used - set(Code.__members__) == set()
    assert set(Code.__members__) - used == set()


def test_no_call_site_writes_a_number(trees):
    written = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and re.fullmatch(r"SW\d{3}", node.value)
    ]
    assert written == []


def test_entries_are_short_and_whole():
    for entry in entries().values():
        assert len(entry.title.split()) <= 8, entry
        assert not entry.title.endswith("."), entry
        for text in (entry.cause, entry.remedy):
            assert text.endswith("."), entry
            assert "  " not in text, entry
            assert len(text.split()) <= 50, entry
            assert "](" not in plain(text), entry


def test_the_page_tells_the_readers_own_report_apart_from_the_rest():
    page = pages(ROOT)["troubleshooting/index.md"]
    assert "2 problems\n- model_configs/gpt2-autocomplete.yaml:" in page
    assert '"ml.g4dn.xlage" is not a known hosting instance type [SW201]\n' in page
    assert "| code | `[SW201]` |" in page


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("SW200", ["SW201", "SW202", "SW203"]),
        ("20", ["SW201", "SW202", "SW203"]),
        ("999999", ["SW719", "SW709", "SW706"]),
        ("unknown field", ["SW106"]),
        ("", []),
    ],
)
def test_a_wrong_code_has_near_ones(text, codes):
    assert nearest_codes(text)[: len(codes) or None] == codes
