"""Time and memory of the config language: what is measured, on which configs, and the verdicts."""

import os
import re
import subprocess
import sys

import pytest
import yaml

from benchmarks.config_language import __main__ as command
from benchmarks.config_language.__main__ import measure, probe_variables, run_probe
from benchmarks.config_language.configs import (
    Template,
    change_one,
    find_templates,
    variation,
    write_project,
)
from benchmarks.config_language.report import Task, measures, page, result, tasks
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.program import ROOT
from benchmarks.trials import Trial
from slipway.project import Project
from tests.benchmarks.results import committed, document_of, shape

PLANNED = (("tiny", "tiny-0000"), ("custom", "custom-0001"))
TEMPLATE = Template(
    "tiny",
    "# tiny\nname: tiny\ndescription: A model\nalarms:\n  model_latency_p99_milliseconds: 600\n"
    "endpoint:\n  instance_count: 2\n  model_data_download_timeout_seconds: 3590\n",
    None,
)


def document(*validate_seconds, configs=1000, megabytes=44):
    """The document of trials: validating takes so long, an import 0.2 s and a plan 10 ms."""
    trials = [
        Trial(
            task,
            number,
            {
                "import_seconds": 0.2,
                "peak_memory_bytes": megabytes * 1e6,
                "process_seconds": 0.25 + seconds,
                "processor_seconds": 0.2 + seconds,
                **({} if task.key == "import" else {"task_seconds": seconds}),
            },
        )
        for number, validated in enumerate(validate_seconds, start=1)
        for task in tasks(configs, PLANNED)
        for seconds in [validated if task.key == "validate" else 0.01]
    ]
    design = {
        "config_count": configs,
        "trials": len(validate_seconds),
        "seed": 1,
        "templates": [template for template, _ in PLANNED],
    }
    return document_of({"design": design, **result(design, trials)})


def test_the_goals_are_about_a_thousand_configs():
    goals = {
        f"{measure.task} {measure.reading}": measure.goal
        for measure in measures(1000, ["tiny", "custom"])
    }
    assert goals == {
        "validate task_seconds": 2.0,
        "validate peak_memory_bytes": 150.0,
        "validate process_seconds": None,
        "review process_seconds": 5.0,
        "review processor_seconds": None,
        "import import_seconds": 0.3,
        "validate import_seconds": None,
        "plan tiny task_seconds": 50,
        "plan custom task_seconds": 50,
    }
    for configs, review_seconds in ((999, 5.0), (499, None)):
        smaller = [measure.goal for measure in measures(configs, ["tiny", "custom"])]
        assert smaller == [None, None, None, review_seconds, None, 0.3, None, 50, 50]


def test_a_goal_is_met_within_its_limit():
    first, _, stated, *_ = document(1.0, 1.2, 2.1)["goals"]
    assert first["verdict"] == Verdict.MET_BY_MEDIANS
    assert first["found"] == {"value": 1.2, "low": 1.0, "high": 2.1}
    assert (stated["verdict"], stated["limit"]) == (None, "none")


def test_the_page_counts_the_goals_and_has_their_units():
    shown = page(document(3.0, 3.0, 3.0, megabytes=151))
    assert "**4 of 6 goals met.** The others: 2 not met." in shown
    assert ": peak memory | at most 150 MB | 151 MB | 151 to 151 | not met |" in shown
    few = page(document(1.0, configs=1))
    assert "**3 of 3 goals met.**" in few
    assert "are for 1,000 configs, and were not measured." in few


def test_the_committed_result_follows_from_its_trials():
    given = committed("config-language")
    keys = {
        task.key: task
        for task in tasks(1000, [(each,) * 2 for each in given["design"]["templates"]])
    }
    trials = [
        Trial(keys[cell["task"]], each["round"], {k: v for k, v in each.items() if k != "round"})
        for cell in given["cells"]
        for each in cell["trials"]
    ]
    found = document_of(result(given["design"], trials))
    assert found["goals"] == given["goals"]
    assert found["cells"] == given["cells"]
    assert shape(document(1.0)["goals"]) == shape(given["goals"])


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    folder = tmp_path_factory.mktemp("project")
    templates = [each for each in find_templates(ROOT) if each.name == "custom"]
    change_one(folder, write_project(folder, templates, 2, seed=1)["custom"])
    return folder


def test_a_fresh_process_says_what_each_task_took(project):
    variables = probe_variables(os.environ)
    validate, review, load, first_plan = (
        run_probe(task, project, variables) for task in tasks(2, [("custom", "custom-0000")])
    )
    assert "task_seconds" not in load
    for readings in (validate, review, first_plan):
        assert readings["task_seconds"] > 0
        assert readings["import_seconds"] + readings["task_seconds"] < readings["process_seconds"]
    # An interpreter with pydantic, and no more than a small machine has.
    assert 15e6 < load["peak_memory_bytes"] <= validate["peak_memory_bytes"] < 1e9


def test_the_peak_is_the_processs_own_and_not_its_parents():
    inner = (
        f"import runpy; probe = runpy.run_path({str(command.PROBE)!r}); "
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
    variables = probe_variables(os.environ)
    with pytest.raises(BenchmarkError) as caught:
        run_probe(Task("validate", ("validate",), "3 model configs valid"), project, variables)
    assert str(caught.value).startswith(
        "`validate` ended well, but did not do what it was timed for\n"
        "2 model configs valid: 2 for `local`, 2 for `ci`, 2 for `benchmark`.\n{"
    )


def test_nothing_of_the_users_python_reaches_the_processes():
    theirs = {
        "HOME": "/home/somebody",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYDANTIC_DISABLE_PLUGINS": "x",
        "SLIPWAY_ENV": "production",
    }
    assert probe_variables(theirs) == {"HOME": "/home/somebody", "PYTHONPATH": str(ROOT)}


def test_the_first_round_is_not_read_and_begins_with_the_plans(monkeypatch, tmp_path):
    ran = []

    def run(task, _folder, _variables):
        ran.append(task.key)
        return {"process_seconds": 1.0}

    monkeypatch.setattr(command, "run_probe", run)
    said = []
    trials = measure(tasks(9, PLANNED), tmp_path, trials=2, seed=1, say=said.append)
    assert ran[:5] == ["plan custom", "plan tiny", "import", "review", "validate"]
    assert [trial.cell.key for trial in trials] == ran[5:]
    assert sorted(ran[5:10]) == sorted(ran[10:]) == sorted(ran[:5])
    assert said[0] == "not timed: plan custom"
    assert said[-1] == f"10/10  round 2 of 2   1.00 s  {ran[-1]}  (0 min left)"


def write(root, name, text, *, lock=None):
    folder = root / "model_configs"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.yaml").write_text(text)
    if lock is not None:
        (folder / f"{name}.lock.json").write_text(lock)


def test_templates_are_the_projects_configs_and_those_of_families_it_ships_none_of(tmp_path):
    write(tmp_path, "tiny", TEMPLATE.text, lock="{}")
    write(tmp_path, "other", "name: other\n")
    own = find_templates(tmp_path)
    assert [template.name for template in own] == ["other", "tiny", "custom"]
    assert own[1] == Template("tiny", TEMPLATE.text, "{}")
    assert own[0].lock is own[2].lock is None
    write(tmp_path, "custom", "name: custom\n")
    assert find_templates(tmp_path)[0].text == "name: custom\n"


def test_a_template_whose_name_cannot_be_replaced_ends_the_benchmark(tmp_path):
    write(tmp_path, "tiny", "name: 'tiny'\n")
    with pytest.raises(BenchmarkError, match=r"^tiny\.yaml has no line `name: tiny` to vary$"):
        find_templates(tmp_path)


def test_a_variation_has_another_name_and_larger_numbers():
    base = yaml.safe_load(TEMPLATE.text)
    found = []
    for number in range(40):
        name, text = variation(TEMPLATE, number, seed=1)
        content = yaml.safe_load(text)
        assert name == content["name"] == f"tiny-{number:04}"
        assert content["description"] == f"A model (copy {number})"
        # Nothing else is touched: what is not in the table, and where the schema ends.
        assert content["endpoint"]["instance_count"] == base["endpoint"]["instance_count"]
        assert 3590 <= content["endpoint"]["model_data_download_timeout_seconds"] <= 3600
        found.append(content["alarms"]["model_latency_p99_milliseconds"])
    assert min(found) >= 600
    assert max(found) <= 1100
    assert len(set(found)) > 10
    assert variation(TEMPLATE, 3, seed=1) == variation(TEMPLATE, 3, seed=1)
    assert variation(TEMPLATE, 3, seed=1) != variation(TEMPLATE, 3, seed=2)


def test_a_project_of_them_is_valid(tmp_path):
    # Whether each shipped config is right is the concern of the tests of the configs.
    templates = [
        each for each in find_templates(ROOT) if each.name in ("gpt2-autocomplete", "custom")
    ]
    first = write_project(tmp_path, templates, 7, seed=1)
    assert first == {"gpt2-autocomplete": "gpt2-autocomplete-0000", "custom": "custom-0001"}
    project = Project(tmp_path)
    assert len(project.files) == 7
    plans = [
        project.plan(name, project.environment(environment), allow_unpublished=True)
        for name in project.files
        for environment in ("local", "benchmark")
        if environment == "local" or name.startswith("custom")
    ]
    assert len(plans) == 7 + 3
    texts = {re.sub(r"-\d{4}|copy \d+", "", path.read_text()) for path in project.files.values()}
    assert len(texts) == 7
    locked = sorted(path.name for path in (tmp_path / "model_configs").glob("*.lock.json"))
    assert locked == [f"gpt2-autocomplete-{number:04}.lock.json" for number in (0, 2, 4, 6)]
