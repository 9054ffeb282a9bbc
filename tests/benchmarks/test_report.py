"""The page and the JSON document."""

import json
from datetime import UTC, datetime

import pytest

from benchmarks.control_plane.design import COMMANDS
from benchmarks.control_plane.report import as_json, as_markdown, goal_line
from benchmarks.control_plane.summary import summarize
from benchmarks.machine import Commit, Machine
from benchmarks.program import ROOT
from benchmarks.report import Context
from tests.benchmarks.trials import design, trials_of

RESULTS = ROOT / "benchmarks" / "results"
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 34, 5, tzinfo=UTC),
    commit=Commit("0123456789abcdef0123", modified=True),
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"node": "v24.1.0"}),
)
DESIGN = design(1, 500, trials=3)
SUMMARY = summarize(DESIGN, trials_of(DESIGN, {1: (10.0, 10.0, 10.0), 500: (11.0, 11.0, 11.0)}))


def test_the_goal_comes_first_with_its_numbers():
    page = as_markdown(DESIGN, SUMMARY, CONTEXT)
    goal = (
        "**Goal met: 1.10 times** (95 %: 1.10 to 1.10; 11.0 s against 10.0 s). The goal: "
        "`cdk deploy NAME -c models=NAME` among 500 configs takes at most 1.2 times as long as "
        "with 1."
    )
    assert page.startswith(f"# What a command costs as a project grows\n\n{goal}\n\n")
    assert goal_line(DESIGN, SUMMARY) == goal


def test_every_command_has_its_row():
    page = as_markdown(DESIGN, SUMMARY, CONTEXT)
    assert (
        "| command | 1 | 500 | 500 : 1 |\n| --- | ---: | ---: | ---: |\n"
        "| `cdk deploy NAME -c models=NAME` | 10.00 | 11.00 | 1.10 (95 %: 1.10 to 1.10) |\n"
        "| `cdk diff NAME -c models=NAME` | 2.00 | 2.00 | 1.00 (95 %: 1.00 to 1.00) |\n"
    ) in page
    assert "](../../docs/pictures/benchmark-commands.svg)\n" in page
    assert "the median of 3 trials, or of 3 trials for `cdk` without `-c models=NAME`." in page
    for command in COMMANDS:
        assert page.count(f"| `{command.shown}` |") == 1


def test_the_page_names_machine_and_commit():
    assert as_markdown(DESIGN, SUMMARY, CONTEXT).endswith(
        "\n\n- Run: 2026-01-02 03:04 UTC, 30 minutes, commit 0123456789ab with uncommitted "
        "changes.\n"
        "- Machine: A processor, 2 cores, 25.3 GB, Linux x86_64.\n"
        "- Load average at the start: 0.1.\n"
        "- Versions: `node v24.1.0`.\n"
        "- Order: seed 1.\n"
        "- Everything runs against the embedded AWS ([what that means](../README.md)).\n"
    )


@pytest.mark.parametrize("name", sorted(path.stem for path in RESULTS.glob("*.json")))
def test_a_committed_page_has_the_circumstances_of_its_document(name: str):
    document = json.loads((RESULTS / f"{name}.json").read_text("utf-8"))
    context = Context(
        started_at=datetime.fromisoformat(document["started_at"]),
        ended_at=datetime.fromisoformat(document["ended_at"]),
        commit=Commit(**document["commit"]),
        machine=Machine(**document["machine"]),
        command=document.get("command", ""),
    )
    page = (RESULTS / f"{name}.md").read_text("utf-8")
    assert f"\n\n## Circumstances\n\n{context.as_list()}\n" in page


def test_one_trial_of_one_size_has_neither_interval_nor_ratio():
    one = design(1, trials=1)
    page = as_markdown(one, summarize(one, trials_of(one, {1: [10.0]})), CONTEXT)
    assert "**Goal not measured** (sizes: 1): `cdk deploy NAME -c models=NAME` among 500" in page
    assert "| command | 1 |\n| --- | ---: |\n" in page
    assert "95 %" not in page
    two = design(1, 500, trials=1)
    summary = summarize(two, trials_of(two, {1: [10.0], 500: [13.0]}))
    assert goal_line(two, summary).startswith(
        "**Goal not met: 1.30 times** (one trial; 13.0 s against 10.0 s). "
    )


def test_the_document_has_every_trial():
    document = json.loads(json.dumps(as_json(DESIGN, SUMMARY, CONTEXT)))
    assert document["started_at"] == "2026-01-02T03:04:05+00:00"
    assert document["commit"] == {"id": "0123456789abcdef0123", "modified": True}
    assert document["machine"]["versions"] == {"node": "v24.1.0"}
    assert document["design"] == {"sizes": [1, 500], "trials": 3, "stated_trials": 3, "seed": 1}
    assert document["goal"]["verdict"] == "met"
    assert len(document["cells"]) == 2 * len(COMMANDS)
    assert document["cells"][1] == {
        "command": "cdk-deploy-selected",
        "typed": "cdk deploy NAME -c models=NAME",
        "form": "selected",
        "config_count": 500,
        "median_seconds": 11.0,
        "lowest_seconds": 11.0,
        "highest_seconds": 11.0,
        "median_processor_seconds": 5.5,
        "ratio": {"value": 1.1, "low": 1.1, "high": 1.1},
        "trials": [
            {"round": number, "seconds": 11.0, "processor_seconds": 5.5} for number in (1, 2, 3)
        ],
    }
