"""`slipway publish` of LMI weights that a training job partitions: the image is a stand-in."""

import subprocess

import pytest

from slipway import java_properties
from slipway.cli.plan_text import describe_plan
from slipway.project import Project
from tests.embedded.training.publishing import EMBEDDED, STAGING, Publishing, Said
from tests.support.pages import ROOT
from tests.support.projects import messages

pytestmark = pytest.mark.timeout(120)

CASE = (ROOT / "tests/golden/cases/lmi-partition.yaml").read_text("utf-8")
FROM_S3 = "    source: s3\n    uri: s3://my-models/opt-6.7b/\n  size_gb: 13.3\n"


@pytest.fixture
def publishing(publishing: Publishing) -> Publishing:
    assert FROM_S3 in CASE
    text = CASE.replace(FROM_S3, "    source: path\n    path: build/checkpoint\n")
    text = text.replace("name: lmi-partition", "name: tiny")
    (publishing.root / "model_configs" / "tiny.yaml").write_text(text, "utf-8")
    return publishing


def test_the_parts_are_published_and_served(publishing):
    said = Said()
    result = publishing.run(STAGING, said)
    locked = publishing.locked(STAGING)
    assert locked.weights is not None
    (job,) = publishing.jobs()
    name = job["TrainingJobName"]
    assert job["AlgorithmSpecification"]["TrainingImage"] == (
        "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.27.0-deepspeed0.12.6-cu121"
    )
    assert job["EnableNetworkIsolation"] is True
    assert [channel["ChannelName"] for channel in job["InputDataConfig"]] == ["weights", "settings"]
    assert said.notes == [
        f"The training job {name} compiles for sm86 on ml.g5.12xlarge. "
        f"Its log: /aws/sagemaker/TrainingJobs, streams {name}/"
    ]
    assert locked.compiled.model_dump(include={"target", "compiler", "source"}) == {
        "target": "sm86",
        "compiler": "DeepSpeed of djl-deepspeed 0.27.0",
        "source": f"training job {name}",
    }
    parts = publishing.verify(locked.compiled.digest, STAGING)
    assert len([path for path in parts if path.endswith(".pt")]) == 1 + 4 * 8
    assert (result.digest, result.parts.digest) == (locked.code.digest, locked.compiled.digest)
    plan = Project(publishing.root).plan("tiny", STAGING)
    assert plan.weights.digest == locked.compiled.digest
    # What the container gets is what the plan shows.
    key = f"artifacts/{locked.code.digest}/files/serving.properties"
    sent = java_properties.parse(publishing.body(STAGING, key))
    assert sent == plan.serving_properties
    assert sent["option.model_id"] == plan.weights.s3_uri
    assert sent["option.checkpoint"] in parts
    assert sent["option.parallel_loading"] == "true"


def test_a_reviewer_reads_how_it_will_be_partitioned(publishing):
    plan = Project(publishing.root).plan("tiny", STAGING, allow_unpublished=True)
    rows = dict(line.split("  ", 1) for line in describe_plan(plan).splitlines())
    assert rows["partition"].strip() == (
        "when published, on ml.g5.12xlarge for sm86: partition --model-dir "
        "/opt/ml/input/data/settings"
    )
    served_as_they_are = Project(publishing.root).plan("tiny", EMBEDDED, allow_unpublished=True)
    assert "\npartition" not in describe_plan(served_as_they_are)


@pytest.mark.size("all")
def test_only_what_changes_the_parts_is_another_job(publishing):
    publishing.run(STAGING)
    first = publishing.locked(STAGING)
    publishing.edit_config("  dtype: fp16\n", "  dtype: fp16\n  predict_timeout_seconds: 30\n")
    said = Said()
    publishing.run(STAGING, said)
    second = publishing.locked(STAGING)
    assert second.compiled == first.compiled
    assert second.code != first.code
    assert said.notes == [f"The same was compiled before, by {first.compiled.source}."]
    assert len(publishing.jobs()) == 1
    publishing.edit_config("tensor_parallel_degree: 4", "tensor_parallel_degree: 2")
    publishing.run(STAGING)
    assert len(publishing.jobs()) == 2
    plan = Project(publishing.root).plan("tiny", STAGING)
    assert plan.serving_properties["option.tensor_parallel_degree"] == "2"


def test_a_job_that_ends_well_and_writes_nothing_is_no_success(publishing):
    publishing.write("usage")
    error = publishing.refused(STAGING)
    (job,) = publishing.jobs()
    assert job["TrainingJobStatus"] == "Completed"
    name = job["TrainingJobName"]
    assert messages(error) == [f"the training job {name} ended well and wrote nothing"]
    assert str(error.problems[0]).startswith("model_configs/tiny.yaml:25:3: artifacts.compile: ")
    assert not publishing.lock_path.exists()


def test_the_embedded_aws_serves_the_weights_as_they_are(publishing):
    said = Said()
    result = publishing.run(EMBEDDED, said)
    assert said.notes == [
        "The embedded AWS has no GPU to partition on: the weights are published as they are."
    ]
    assert (result.parts, publishing.jobs()) == (None, [])
    locked = publishing.locked(EMBEDDED)
    assert locked.compiled is None
    plan = Project(publishing.root).plan("tiny", EMBEDDED)
    assert plan.weights.digest == locked.weights.digest
    assert not {"option.checkpoint", "option.parallel_loading"} & set(plan.serving_properties)


@pytest.mark.size("all")
def test_the_command_says_what_the_container_loads(publishing):
    process: subprocess.Popen[str] = publishing.command()
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    locked = publishing.locked(STAGING)
    lines = output.splitlines()
    assert lines[1].startswith("Partitioned into ")
    assert lines[1].endswith(f" for sm86, by {locked.compiled.source}.")
    assert lines[2] == f"The container loads the parts itself: artifact {locked.compiled.digest}"
