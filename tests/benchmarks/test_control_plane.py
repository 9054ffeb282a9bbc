"""The commands' benchmark: what is typed, the projects it is typed in, and the verdict."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.control_plane.report import COMMANDS, GOAL_COMMAND, cells_of, page, result
from benchmarks.control_plane.workspace import SAMPLE, SizedProject, command_variables
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.execution import Timing
from benchmarks.trials import Trial
from demo import copy_project
from slipway.embedded_aws.control import LocalState
from slipway.project import Project
from tests.benchmarks.results import committed, document_of, shape


def document(deploy_seconds):
    """The document of trials in which the goal's command takes so long, and any other 2 s."""
    sizes = list(deploy_seconds)
    trials = [
        Trial(cell, number, Timing(seconds, seconds / 2))
        for cell in cells_of(sizes)
        for number, taken in enumerate(deploy_seconds[cell.config_count], start=1)
        for seconds in [taken if cell.command == GOAL_COMMAND else 2.0]
    ]
    count = len(deploy_seconds[sizes[0]])
    design = {"sizes": sizes, "trials": count, "stated_trials": count, "seed": 1}
    return document_of({"design": design, **result(sizes, trials, 1)})


def test_a_command_line_names_the_model_everywhere_and_asks_nothing():
    assert GOAL_COMMAND.line("tiny") == (
        "cdk", "deploy", "tiny", "-c", "models=tiny", "--require-approval", "never",
    )  # fmt: skip
    assert COMMANDS[1].line("tiny") == ("cdk", "diff", "tiny", "-c", "models=tiny")
    assert [command.typed for command in COMMANDS if command.is_only_stated] == [
        "cdk deploy NAME", "cdk diff NAME", "cdk synth NAME",
    ]  # fmt: skip
    assert len({command.key for command in COMMANDS}) == len(COMMANDS)


def test_the_document_has_every_trial_of_every_cell_in_the_committed_form():
    found = document({1: (10.0,) * 3, 500: (11.0,) * 3})
    assert shape(found["cells"]) == shape(committed("control-plane")["cells"])
    assert len(found["cells"]) == 2 * len(COMMANDS)
    assert found["cells"][1] == {
        "command": "cdk-deploy-selected",
        "typed": "cdk deploy NAME -c models=NAME",
        "form": "selected",
        "config_count": 500,
        "ratio": {"value": 1.1, "low": 1.1, "high": 1.1},
        "readings": {
            "seconds": {"median": 11.0, "low": 11.0, "high": 11.0},
            "processor_seconds": {"median": 5.5, "low": 5.5, "high": 5.5},
        },
        "trials": [
            {"round": number, "seconds": 11.0, "processor_seconds": 5.5} for number in (1, 2, 3)
        ],
    }


def test_ratios_are_to_the_smallest_size():
    cells = document({10: (2.0,), 100: (3.0,), 500: (4.0,)})["cells"]
    ratios = [each["ratio"] for each in cells if each["command"] == GOAL_COMMAND.key]
    assert [ratio and ratio["value"] for ratio in ratios] == [None, 1.5, 2.0]


def test_the_goal_is_of_the_largest_project_and_the_smallest():
    found = document({1: (10.0,) * 3, 10: (99.0,) * 3, 500: (11.0, 11.1, 20.0)})
    assert [each["verdict"] for each in found["goals"]] == [Verdict.MET_BY_MEDIANS]


@pytest.mark.parametrize("sizes", [(1, 10), (10, 500), (500,), (1,)])
def test_without_both_of_the_goals_sizes_there_is_no_verdict(sizes):
    found = document(dict.fromkeys(sizes, (1.0, 1.0)))
    [goal] = found["goals"]
    assert (goal["found"], goal["verdict"]) == (None, Verdict.NOT_MEASURED)
    assert "The others: 1 not measured." in page(found)


def test_one_trial_has_no_interval_and_one_size_no_ratio():
    shown = page(document({1: (10.0,), 500: (13.0,)}))
    assert " | at most 1.2 | 1.30 | one trial | not met |" in shown
    assert "| 10.00 | 13.00 | 1.30 (one trial) |" in shown
    assert "| command | 1 |\n| --- | ---: |\n" in page(document({1: (10.0,)}))


@pytest.fixture
def sized(tmp_path):
    copy_project(tmp_path)
    project = SizedProject(tmp_path, 3)
    project.write_configs()
    return project


def test_a_project_has_that_many_configs_and_each_can_be_deployed(sized):
    project = Project(sized.folder)
    assert list(project.files) == ["changed-among-3", "other-0001", "other-0002"]
    environment = project.environment("local")
    plans = [project.plan(name, environment) for name in project.files]
    assert [plan.endpoint_name for plan in plans] == [
        "changed-among-3-local", "other-0001-local", "other-0002-local",
    ]  # fmt: skip
    assert len({plan.artifact.s3_uri for plan in plans}) == 1
    assert sized.endpoint_name == plans[0].endpoint_name


def test_a_change_is_one_threshold_of_the_deployed_model(sized):
    project = Project(sized.folder)
    environment = project.environment("local")

    def thresholds():
        return [
            project.plan(name, environment).config.alarms.model_latency_p99_milliseconds
            for name in project.files
        ]

    assert thresholds() == [600, 600, 600]
    sized.change()
    assert thresholds() == [601, 600, 600]
    sized.change()
    assert thresholds() == [602, 600, 600]
    assert sized.threshold_milliseconds == 602


def test_a_sample_that_can_no_longer_be_changed_ends_the_benchmark(tmp_path):
    copy_project(tmp_path)
    config = tmp_path / "model_configs" / f"{SAMPLE}.yaml"
    config.write_text(config.read_text().replace("model_latency_p99_milliseconds", "p99"))
    with pytest.raises(BenchmarkError, match=f"the config of {SAMPLE} has 0 lines like "):
        SizedProject(tmp_path, 1).write_configs()


def test_commands_see_the_embedded_aws_and_no_setting_of_the_users():
    state = LocalState(1, 4566, "http://localhost:4566", datetime(2026, 1, 1, tzinfo=UTC), "secret")
    theirs = {
        "HOME": "/home/somebody",
        "AWS_PROFILE": "production",
        "CDK_OUTDIR": "elsewhere",
        "PYTHONDONTWRITEBYTECODE": "1",
        "SLIPWAY_ENV": "production",
    }
    variables = command_variables(state, theirs)
    assert variables["HOME"] == "/home/somebody"
    assert variables["AWS_ENDPOINT_URL"] == state.url
    assert variables["PATH"].split(os.pathsep)[0] == str(Path(sys.executable).parent)
    assert variables.keys() & theirs.keys() == {"HOME"}
