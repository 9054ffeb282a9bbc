"""The committed results: each page follows from its document, and each document has its form."""

import importlib
from dataclasses import replace

import pytest

from benchmarks.machine import Commit
from benchmarks.program import RESULTS
from benchmarks.report import (
    Context,
    estimated,
    goals_line,
    picture,
    rounded_rate,
    significant,
)
from tests.benchmarks.results import CONTEXT, committed, differing_lines

NAMES = sorted(each.stem for each in RESULTS.glob("*.json") if not each.stem.startswith("verify-"))


@pytest.mark.parametrize("name", NAMES)
def test_a_committed_page_follows_from_its_document(name):
    report = importlib.import_module(f"benchmarks.{name.replace('-', '_')}.report")
    page = (RESULTS / f"{name}.md").read_text("utf-8")
    assert differing_lines(report.page(committed(name)), page) == []


@pytest.mark.parametrize("name", sorted(each.stem for each in RESULTS.glob("*.json")))
def test_a_committed_page_has_the_circumstances_of_its_document(name):
    page = (RESULTS / f"{name}.md").read_text("utf-8")
    assert f"\n\n## Circumstances\n\n{Context.of(committed(name)).as_list()}\n" in page


def test_the_circumstances_name_the_machine_the_commit_and_the_command():
    commit = Commit("0123456789abcdef0123", modified=True)
    found = replace(CONTEXT, commit=commit, command="python -m benchmarks.lmi")
    assert Context.of(found.as_json()) == found
    assert found.as_list("A note.") == (
        "- Run: `python -m benchmarks.lmi`, 2026-01-02 03:04 UTC, 7 minutes, commit 0123456789ab "
        "with uncommitted changes.\n"
        "- Machine: A processor, 2 cores, 25.3 GB, Linux x86_64.\n"
        "- Load average at the start: 0.1.\n"
        "- Versions: `node v24.1.0`.\n"
        "- A note."
    )
    assert CONTEXT.as_list().startswith("- Run: 2026-01-02 03:04 UTC, 7 minutes, no commit.\n")


def test_goals_that_are_not_met_are_counted_by_their_verdict():
    assert goals_line(["met", "met"]) == "**2 of 2 goals met.**"
    assert goals_line(["met", "not met", "met by the medians only", "not met"]) == (
        "**1 of 4 goals met.** The others: 2 not met, 1 met by the medians only."
    )


def test_a_quick_run_has_no_plot():
    quick, full = ({"design": {"is_quick": each}} for each in (True, False))
    assert picture(full, "name", "A plot") == ["![A plot](../../docs/pictures/name.svg)"]
    assert picture(quick, "name", "A plot") == []


def test_numbers_have_the_digits_that_mean_something():
    assert [significant(each) for each in (1234.5, 12.34, 1.234, 0.1234)] == [
        "1,234", "12.3", "1.23", "0.123",
    ]  # fmt: skip
    assert (rounded_rate(0.10981234), rounded_rate(1234.5678)) == (0.109812, 1234.57)
    assert estimated({"value": 1.5, "low": 1.25, "high": 2.0}) == "1.50 (1.25 to 2.00)"
    assert estimated({"value": 1.5, "low": None, "high": None}) == "1.50 (one trial)"
