"""A Triton repository of the user's own is published as it is, once it has been checked."""

import pytest

from slipway.errors import UserError
from slipway.project import Project
from slipway.publishing.manifest import Snapshot
from tests.publishing.progress import run
from tests.support.projects import LOCAL, messages, write_files, write_project
from tests.unit.planning.triton_repositories import pipeline

CONFIG = """\
name: tiny
description: Models of the user's own
model: {family: t5, parameters: 60506624}
serving:
  container: triton
  version: "24.09"
  backend: python
  repository: triton/own
  default_model: pipeline
artifacts: {}
endpoint:
  instances: [ml.c5.xlarge]
  model_data_download_timeout_seconds: 600
  container_startup_health_check_timeout_seconds: 600
alarms:
  model_latency_p99_milliseconds: 600
"""


@pytest.fixture
def root(tmp_path):
    write_files(tmp_path / "triton/own", pipeline())
    return write_project(tmp_path, {"tiny": CONFIG})


def test_the_artifact_is_the_repository(root, access, keys):
    result = run(root, access)
    manifest = Snapshot.of(root / "triton" / "own", "triton/own").manifest
    files = f"artifacts/{manifest.digest}/files/"
    assert (result.digest, result.source, result.target) == (manifest.digest, "triton/own", "any")
    assert {key.removeprefix(files) for key in keys() if key.startswith(files)} == set(pipeline())
    # The model data is at the root of the prefix, where AWS's image looks for directories.
    plan = Project(root).plan("tiny", LOCAL)
    assert plan.artifact.digest == manifest.digest
    assert plan.container_environment["SAGEMAKER_TRITON_DEFAULT_MODEL_NAME"] == "pipeline"
    assert run(root, access).lock_changed is False


def test_nothing_moves_while_a_model_has_a_fault(root, access, keys):
    config = root / "triton/own/echo/config.pbtxt"
    config.write_text(config.read_text("utf-8").replace("max_batch_size: 8", "max_batch: 8"))
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert messages(caught.value) == ["there is no field `max_batch` in config.pbtxt"]
    [problem] = caught.value.problems
    assert str(problem.location) == "triton/own/echo/config.pbtxt:3:1"
    assert keys() == {}


def test_another_repository_is_another_artifact(root, access):
    run(root, access)
    (root / "triton/own").rename(root / "triton/new")
    config = root / "model_configs/tiny.yaml"
    config.write_text(CONFIG.replace("triton/own", "triton/new"), "utf-8")
    with pytest.raises(UserError, match="the config changed after the sample was published"):
        Project(root).plan("tiny", LOCAL)


def test_a_directory_that_is_not_there_is_named(root, access):
    (root / "triton/own").rename(root / "triton/new")
    with pytest.raises(UserError, match="triton/own is not a directory"):
        run(root, access)


def test_a_sample_is_deployed_in_place_of_the_repository(root, access):
    (root / "triton/own").rename(root / "triton/small")
    config = root / "model_configs/tiny.yaml"
    text = CONFIG.replace("artifacts: {}", "artifacts: {sample: {path: triton/small}}")
    config.write_text(text, "utf-8")
    assert run(root, access).source == "triton/small"
    (root / "triton/small/again/config.pbtxt").write_text("name: 'other'", "utf-8")
    with pytest.raises(UserError, match="`name` is 'other', and the directory is `again`"):
        Project(root).plan("tiny", LOCAL)
