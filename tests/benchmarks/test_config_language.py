"""Time and memory of the config language: what is measured, computed and reported."""

import json
import os
import subprocess
import sys
from datetime import UTC, datetime

import pytest

from benchmarks.config_language import __main__ as program
from benchmarks.config_language import session
from benchmarks.config_language.configs import find_templates, write_project
from benchmarks.config_language.design import Design, Task
from benchmarks.config_language.report import as_json, as_markdown, verdict_line
from benchmarks.config_language.session import measure, probe_variables, run_probe
from benchmarks.config_language.summary import summarize
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Spread, Verdict
from benchmarks.machine import Commit, Machine
from benchmarks.program import ROOT
from benchmarks.report import Context
from benchmarks.trials import Trial

PLANNED = (("tiny", "tiny-0000"), ("custom", "custom-0001"))
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 6, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"python": "3.11.7"}),
)


def design(configs: int = 1000, trials: int = 3) -> Design:
    return Design(configs, trials, seed=1, planned=PLANNED)


def trials_of(plan: Design, *validate_seconds: float, megabytes: float = 44) -> list[Trial]:
    """Returns trials in which validating takes so long, an import 0.2 s and a plan 10 ms."""
    trials = []
    for number, tasks in enumerate(plan.rounds(), start=1):
        for task in tasks:
            seconds = validate_seconds[number - 1] if task.key == "validate" else 0.01
            readings = {
                "import_seconds": 0.2,
                "peak_memory_bytes": megabytes * 1e6,
                "process_seconds": 0.25 + seconds,
            }
            if task.key != "import":
                readings["task_seconds"] = seconds
            trials.append(Trial(task, number, readings))
    return trials


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    templates = [each for each in find_templates(ROOT) if each.name == "custom"]
    write_project(folder, templates, 2, seed=1)
    return folder


def test_the_goals_are_about_a_thousand_configs():
    goals = {measure.key: measure.goal for measure in design().measures}
    assert goals == {
        "validate task_seconds": 2.0,
        "validate peak_memory_bytes": 150e6,
        "validate process_seconds": None,
        "import import_seconds": 0.3,
        "validate import_seconds": None,
        "plan tiny task_seconds": 0.05,
        "plan custom task_seconds": 0.05,
    }
    smaller = [measure.goal for measure in design(configs=999).measures]
    assert smaller == [None, None, None, 0.3, None, 0.05, 0.05]


def test_each_task_runs_once_a_round_in_an_order_that_the_seed_makes():
    rounds = design(trials=6).rounds()
    keys = [[task.key for task in tasks] for tasks in rounds]
    assert [sorted(each) for each in keys] == [
        ["import", "plan custom", "plan tiny", "validate"]
    ] * 6
    assert len({tuple(each) for each in keys}) > 1
    assert rounds == design(trials=6).rounds()


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((1.0, 1.2, 1.9), Verdict.MET),
        ((1.0, 1.2, 2.0), Verdict.MET_BY_MEDIAN),
        ((1.0, 2.0, 2.1), Verdict.MISSED),
    ],
)
def test_a_goal_is_met_below_its_limit(seconds, verdict):
    row = summarize(design(), trials_of(design(), *seconds))[0]
    assert row.verdict is verdict
    assert row.spread == Spread(seconds[1], seconds[0], seconds[2])


def test_what_is_only_stated_has_no_verdict():
    rows = summarize(design(), trials_of(design(), 1.0, 1.2, 1.4))
    met = Verdict.MET
    assert [row.verdict for row in rows] == [met, met, None, met, None, met, met]
    assert rows[2].values == (1.25, 1.45, 1.65)


def test_the_page_has_the_verdict_every_row_and_the_machine():
    rows = summarize(design(), trials_of(design(), 1.0, 1.2, 2.5))
    assert as_markdown(design(), rows, CONTEXT) == (
        "# What reading, checking and planning configs costs\n\n"
        "**4 of 5 goals met.** `slipway validate`, 1,000 configs, after the import: met by the "
        "median only.\n\n"
        "|  | goal |  | median | lowest to highest | trials |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: |\n"
        "| `slipway validate`, 1,000 configs, after the import | under 2 s | met by the median "
        "only | 1.20 s | 1.00 s to 2.50 s | 3 |\n"
        "| `slipway validate`, 1,000 configs: peak memory | under 150 MB | met | 44 MB | 44 MB to "
        "44 MB | 3 |\n"
        "| `slipway validate`, 1,000 configs, the whole process | none |  | 1.45 s | 1.25 s to "
        "2.75 s | 3 |\n"
        "| import of the command line | under 0.3 s | met | 0.20 s | 0.20 s to 0.20 s | 3 |\n"
        "| import of the command line and of what reads configs | none |  | 0.20 s | 0.20 s to "
        "0.20 s | 3 |\n"
        "| first plan of a process: tiny | under 50 ms | met | 10 ms | 10 ms to 10 ms | 3 |\n"
        "| first plan of a process: custom | under 50 ms | met | 10 ms | 10 ms to 10 ms | 3 |\n\n"
        "## Circumstances\n\n"
        "- Run: 2026-01-02 03:04 UTC, 2 minutes, no commit.\n"
        "- Machine: A processor, 2 cores, 25.3 GB, Linux x86_64.\n"
        "- Load average at the start: 0.1.\n"
        "- Versions: `python 3.11.7`.\n"
        "- Order and configs: seed 1.\n"
        "- [What is measured](../README.md).\n"
    )


def test_the_verdict_in_one_line():
    good = summarize(design(), trials_of(design(), 1.0, 1.0, 1.0))
    assert verdict_line(design(), good) == "**All 5 goals met**, by every trial."
    large = summarize(design(), trials_of(design(), 3.0, 3.0, 3.0, megabytes=150))
    assert verdict_line(design(), large) == (
        "**3 of 5 goals met.** `slipway validate`, 1,000 configs, after the import: not met; "
        "`slipway validate`, 1,000 configs: peak memory: not met."
    )
    one = design(configs=1)
    assert verdict_line(one, summarize(one, trials_of(one, 1.0, 1.0, 1.0))) == (
        "**All 3 goals met**, by every trial. The goals of `slipway validate` are for 1,000 "
        "configs, and were not measured."
    )


def test_the_document_has_every_trial():
    trials = trials_of(design(), 1.00004, 1.2, 1.4)
    document = json.loads(
        json.dumps(as_json(design(), summarize(design(), trials), trials, CONTEXT))
    )
    assert document["design"] == {
        "config_count": 1000, "trials": 3, "seed": 1, "templates": ["tiny", "custom"],
    }  # fmt: skip
    assert document["machine"]["processor"] == "A processor"
    assert document["measures"][0] == {
        "measure": "validate task_seconds",
        "title": "`slipway validate`, 1,000 configs, after the import",
        "goal": 2.0, "verdict": "met", "median": 1.2, "lowest": 1.0, "highest": 1.4,
    }  # fmt: skip
    assert [(each["round"], each["task"]) for each in document["trials"]] == [
        (trial.round, trial.cell.key) for trial in trials
    ]
    first = next(each for each in document["trials"] if each["task"] == "validate")
    assert first == {
        "round": 1, "task": "validate", "import_seconds": 0.2, "peak_memory_bytes": 44e6,
        "process_seconds": 1.25, "task_seconds": 1.0,
    }  # fmt: skip


def test_the_committed_result_follows_from_its_trials():
    results = ROOT / "benchmarks" / "results"
    document = json.loads((results / "config-language.json").read_text("utf-8"))
    given = document["design"]
    plan = Design(
        given["config_count"],
        given["trials"],
        given["seed"],
        planned=tuple((template, template) for template in given["templates"]),
    )
    context = Context(
        started_at=datetime.fromisoformat(document["started_at"]),
        ended_at=datetime.fromisoformat(document["ended_at"]),
        commit=Commit(**document["commit"]),
        machine=Machine(**document["machine"]),
    )
    tasks = {task.key: task for task in plan.tasks}
    trials = [
        Trial(tasks[each.pop("task")], each.pop("round"), each) for each in document["trials"]
    ]
    rows = summarize(plan, trials)
    assert as_markdown(plan, rows, context) == (results / "config-language.md").read_text("utf-8")
    made = json.loads(json.dumps(as_json(plan, rows, trials, context)))
    assert made["measures"] == document["measures"]


def test_a_fresh_process_says_what_each_task_took(project):
    plan = Design(2, 1, seed=1, planned=(("custom", "custom-0000"),))
    variables = probe_variables(os.environ, ROOT)
    validate, load, first_plan = (run_probe(task, project, variables) for task in plan.tasks)
    assert "task_seconds" not in load
    for readings in (validate, first_plan):
        assert readings["task_seconds"] > 0
        assert readings["import_seconds"] + readings["task_seconds"] < readings["process_seconds"]
    # An interpreter with pydantic, and no more than a small machine has.
    assert 15e6 < load["peak_memory_bytes"] <= validate["peak_memory_bytes"] < 1e9


def test_the_peak_is_the_processs_own_and_not_its_parents():
    inner = (
        f"import runpy; probe = runpy.run_path({str(session.PROBE)!r}); "
        "print(probe['peak_memory_bytes']())"
    )
    code = (
        "import subprocess, sys\n"
        "held = bytearray(200_000_000)\n"
        f"subprocess.run([sys.executable, '-c', {inner!r}], check=True)"
    )
    output = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert 5e6 < int(output) < 100e6


def test_a_process_that_did_not_do_its_work_ends_the_benchmark(project):
    variables = probe_variables(os.environ, ROOT)
    with pytest.raises(BenchmarkError) as caught:
        run_probe(Task("validate", ("validate",), "3 model configs valid"), project, variables)
    assert str(caught.value).startswith(
        "`validate` ended well, but did not do what it was timed for\n"
        "2 model configs valid: 2 for `local`, 2 for `ci`, 2 for `benchmark`.\n{"
    )
    with pytest.raises(BenchmarkError, match="no model config matches 'nobody'"):
        run_probe(Task("plan x", ("plan", "nobody"), "nobody"), project, variables)


def test_nothing_of_the_users_python_reaches_the_processes():
    theirs = {
        "HOME": "/home/somebody",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDANTIC_DISABLE_PLUGINS": "x",
        "SLIPWAY_ENV": "production",
    }
    assert probe_variables(theirs, ROOT) == {"HOME": "/home/somebody", "PYTHONPATH": str(ROOT)}


def test_the_first_round_is_not_read_and_begins_with_the_plans(monkeypatch, tmp_path):
    ran: list[str] = []

    def run(task: Task, _folder: object, _variables: object) -> dict[str, float]:
        ran.append(task.key)
        return {"process_seconds": 1.0}

    monkeypatch.setattr(session, "run_probe", run)
    said: list[str] = []
    trials = measure(design(trials=2), tmp_path, ROOT, said.append)
    assert ran[:4] == ["plan custom", "plan tiny", "import", "validate"]
    assert [trial.cell.key for trial in trials] == ran[4:]
    assert said[0] == "not timed: plan custom"
    assert said[-1] == f"round 2 of 2   1.00 s  {ran[-1]}"


def test_the_defaults_measure_the_goals():
    options = program.parse([])
    assert (options.configs, options.trials, options.seed) == (1000, 15, 1)
    assert options.output == ROOT / "benchmarks" / "results"


@pytest.mark.parametrize("option", ["--configs", "--trials"])
def test_a_wrong_number_is_named_and_ends_with_1(option, capsys):
    with pytest.raises(SystemExit) as caught:
        program.main([option, "0"])
    assert caught.value.code == 1
    assert capsys.readouterr().err.endswith(
        f"argument {option}: '0' is not a whole number of at least 1\n"
    )


def test_results_are_written(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(program, "_measure", lambda *_: ({"a": 1}, "# page\n"))
    assert program.main(["--output", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "# page\n"
    assert json.loads((tmp_path / "config-language.json").read_text()) == {"a": 1}
    assert (tmp_path / "config-language.md").read_text() == "# page\n"
