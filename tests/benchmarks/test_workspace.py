"""The projects that are measured are real ones, of the right size."""

import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from benchmarks.control_plane.workspace import SAMPLE, SizedProject, command_variables
from benchmarks.errors import BenchmarkError
from demo import copy_project
from embedded_aws.control import LocalState
from slipway.project import Project


@pytest.fixture
def sized(tmp_path):
    copy_project(tmp_path)
    project = SizedProject(tmp_path, 3)
    project.write_configs()
    return project


def test_it_has_that_many_configs_and_each_can_be_deployed(sized):
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

    def thresholds() -> list[float]:
        return [
            project.plan(name, environment).alarms.thresholds["model_latency_p99_microseconds"]
            for name in project.files
        ]

    assert thresholds() == [600_000, 600_000, 600_000]
    sized.change()
    assert thresholds() == [601_000, 600_000, 600_000]
    sized.change()
    assert thresholds() == [602_000, 600_000, 600_000]
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
