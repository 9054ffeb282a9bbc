"""`slipway publish` of a model that is compiled, by a training job with a stand-in compiler."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from slipway.errors import UserError
from slipway.project import Project
from slipway.publishing.publish import Published
from tests.embedded.training.publishing import EMBEDDED, STAGING, Publishing, Said
from tests.support.processes import kill_tree
from tests.support.projects import messages
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def begin(publishing: Publishing) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    begun: list[subprocess.Popen[str]] = []

    def begin(*arguments: str) -> subprocess.Popen[str]:
        begun.append(publishing.command(*arguments))
        return begun[-1]

    yield begin
    for process in begun:
        kill_tree(process)
        if process.stderr is not None:
            process.stderr.close()


def test_weights_are_compiled_and_the_lock_has_both_parts(publishing):
    said = Said()
    result = publishing.run(said=said)
    locked = publishing.locked()
    (job,) = publishing.jobs()
    name = job["TrainingJobName"]
    assert locked.weights.model_dump(exclude={"digest", "size_bytes"}) == {
        "file_count": 5,
        "source": "build/checkpoint",
        "target": "any",
        "compiler": None,
    }
    assert (locked.compiled.target, locked.compiled.compiler, locked.compiled.source) == (
        "cpu", "onnx", f"training job {name}",
    )  # fmt: skip
    weights = publishing.verify(locked.weights.digest)
    compiled = publishing.verify(locked.compiled.digest)
    assert set(compiled) == {*weights, "told.json"}
    assert result == Published(
        digest=locked.compiled.digest,
        size_bytes=locked.compiled.size_bytes,
        file_count=6,
        source=f"training job {name}",
        target="cpu",
        weights_digest=locked.weights.digest,
        uploaded_bytes=locked.weights.size_bytes + locked.compiled.size_bytes,
        lock_changed=True,
    )
    told = json.loads(compiled["told.json"])
    assert told["arguments"] == ["compile"]
    assert told["config"]["hyperparameters.json"] == {
        "dtype": "fp32",
        "max_batch_size": "8",
        "max_input_tokens": "64",
        "max_new_tokens": "42",
        "target": "cpu",
    }
    assert said.notes == [
        f"The training job {name} compiles for cpu on ml.g4dn.xlarge. "
        f"Its log: /aws/sagemaker/TrainingJobs, streams {name}/"
    ]
    states = [event[1] for event in said.events if event[0] == "job"]
    assert states[-1] == "Completed"
    plan = Project(publishing.root).plan("tiny", EMBEDDED)
    assert (plan.artifact.digest, plan.artifact.target) == (locked.compiled.digest, "cpu")
    # What comes from the foundation, the config and its defaults.
    assert job["RoleArn"] == publishing.account.role
    assert job["OutputDataConfig"]["KmsKeyId"] == publishing.key
    assert job["ResourceConfig"]["VolumeSizeInGB"] == 30
    assert job["StoppingCondition"] == {"MaxRuntimeInSeconds": 7200}
    tags = publishing.account.sagemaker.list_tags(ResourceArn=job["TrainingJobArn"])["Tags"]
    assert tags == [
        {"Key": "slipway:environment", "Value": "local"},
        {"Key": "slipway:model", "Value": "tiny"},
    ]


def test_the_same_inputs_are_compiled_once(publishing):
    first = publishing.run()
    lock = publishing.lock_path.read_bytes()
    publishing.lock_path.unlink()
    said = Said()
    again = publishing.run(said=said)
    assert publishing.lock_path.read_bytes() == lock
    assert (again.digest, again.uploaded_bytes, again.lock_changed) == (first.digest, 0, True)
    assert said.notes == [f"The same was compiled before, by {first.source}."]
    assert publishing.run().lock_changed is False
    assert len(publishing.jobs()) == 1


def test_what_changes_the_result_is_compiled_anew_and_nothing_else_is(publishing):
    first = publishing.run()
    publishing.edit_config("instance: ml.g4dn.xlarge", "instance: ml.g4dn.2xlarge")
    publishing.edit_config("max_new_tokens: 42", "max_new_tokens: 42\n  max_queue_length: 9")
    assert Project(publishing.root).plan("tiny", EMBEDDED).artifact.digest == first.digest
    moved = publishing.run()
    assert (moved.digest, moved.lock_changed) == (first.digest, False)
    publishing.edit_config("max_input_tokens: 64", "max_input_tokens: 65")
    with pytest.raises(UserError, match="the config changed after the release was published"):
        Project(publishing.root).plan("tiny", EMBEDDED)
    assert publishing.run().digest != first.digest
    assert len(publishing.jobs()) == 2


@pytest.mark.size("all")
def test_each_environment_compiles_its_own_and_keeps_the_others(publishing):
    publishing.run()
    embedded = json.loads(publishing.lock_path.read_text())["environments"]["local"]
    publishing.build_image()
    result = publishing.run(STAGING)
    assert result.target == "sm75"
    environments = json.loads(publishing.lock_path.read_text())["environments"]
    assert environments["local"] == embedded
    assert environments["staging"]["compiled"]["target"] == "sm75"
    assert environments["staging"]["compiled"]["compiler"] == "tensorrt 10.13"
    project = Project(publishing.root)
    assert project.plan("tiny", STAGING).artifact.target == "sm75"
    assert project.plan("tiny", EMBEDDED).artifact.target == "cpu"


@pytest.mark.size("all")
def test_a_failed_job_is_told_with_the_end_of_its_log_and_tried_again(publishing):
    publishing.write("fail")
    error = publishing.refused()
    (job,) = publishing.jobs()
    name = job["TrainingJobName"]
    assert str(error) == (
        "1 problem\n"
        "- model_configs/tiny.yaml:21:3: artifacts.compile: the training job "
        f"{name} failed: AlgorithmError: config.json has model_type bert: only gpt2 is compiled, "
        "exit code: 1; the end of its log: [SW642]\n"
        "      compiling as fail: compile\n"
        "    Correct the cause and run the command again. The whole log is in "
        f"/aws/sagemaker/TrainingJobs, streams {name}/"
    )
    assert not publishing.lock_path.exists()
    publishing.refused()
    assert [job["TrainingJobName"] for job in publishing.jobs()] == [name, f"{name}-2"]


def test_a_job_that_wrote_nothing_is_no_model(publishing):
    publishing.write("empty")
    assert messages(publishing.refused())[0].startswith(
        f"there are no objects under s3://{EMBEDDED.artifact_bucket}/compile/compile-tiny-"
    )
    assert not publishing.lock_path.exists()


@pytest.mark.usefixtures("late")
def test_a_job_that_takes_too_long_is_told(publishing):
    publishing.write("slow")
    publishing.edit_config("volume_size_gb: 30", "max_runtime_seconds: 60")
    error = publishing.refused()
    (job,) = publishing.jobs()
    (problem,) = error.problems
    assert problem.message.startswith(
        f"the training job {job['TrainingJobName']} was stopped after `max_runtime_seconds`, "
        "60 seconds; the end of its log:\n      compiling as slow: compile\n"
    )
    assert problem.remedy == "Raise `max_runtime_seconds`, or compile on a faster type."
    assert not publishing.lock_path.exists()


@pytest.mark.size("all")
def test_a_job_that_somebody_stopped_is_told(publishing, begin):
    publishing.write("slow")
    publishing.build_image()
    process = begin()
    (job,) = eventually(publishing.jobs)
    publishing.account.pid(job["TrainingJobName"])
    publishing.account.sagemaker.stop_training_job(TrainingJobName=job["TrainingJobName"])
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"the training job {job['TrainingJobName']} was stopped by somebody" in errors
    assert "Run the command again to start another." in errors


@pytest.mark.size("all")
def test_a_result_that_is_gone_is_made_again(publishing):
    first = publishing.run()
    # Everything but what was uploaded: as when the output expired before it was copied.
    for prefix in (f"artifacts/{first.digest}/", "compile/"):
        for item in publishing.objects(EMBEDDED, prefix):
            publishing.account.s3.delete_object(Bucket=EMBEDDED.artifact_bucket, Key=item["Key"])
    again = publishing.run()
    publishing.verify(again.digest)
    assert [job["TrainingJobName"][-2:] == "-2" for job in publishing.jobs()] == [False, True]


@pytest.mark.size("all")
def test_stopped_at_any_point_the_next_run_finishes_with_one_job(publishing):
    # Each file is a point of its own.
    publishing.checkpoint.joinpath("mode").unlink()
    total = len(_events_of_a_run(publishing))
    assert total >= 10
    notes: list[str] = []
    for last_event in range(1, total):
        publishing.checkpoint.joinpath("own.txt").write_text(f"{last_event} {publishing.root}")
        publishing.lock_path.unlink(missing_ok=True)
        before = len(publishing.all_jobs())
        with pytest.raises(KeyboardInterrupt):
            publishing.run(said=Said(last_event))
        assert not publishing.lock_path.exists()
        said = Said()
        result = publishing.run(said=said)
        notes += said.notes
        own = publishing.verify(result.digest)["own.txt"]
        assert own.startswith(f"{last_event} ".encode())
        assert len(publishing.all_jobs()) == before + 1
    assert any(note.endswith(" was done before.") for note in notes)


def _events_of_a_run(publishing: Publishing) -> list[tuple[Any, ...]]:
    """What a run says, with one look at its job: how many there are depends on the machine."""
    said = Said()
    publishing.run(said=said)
    return [
        event
        for number, event in enumerate(said.events)
        if event[0] != "job" or said.events[number - 1][0] != "job"
    ]


@pytest.mark.size("all")
def test_ctrl_c_leaves_the_job_and_the_next_run_takes_over(publishing, begin, tmp_path):
    gate = tmp_path / "gate"
    publishing.write(f"gate {gate}")
    publishing.build_image()
    process = begin()
    (job,) = eventually(publishing.jobs)
    name = job["TrainingJobName"]
    eventually(lambda: publishing.account.describe(name)["SecondaryStatus"] == "Training")
    os.killpg(process.pid, signal.SIGINT)
    output, errors = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, ""), errors
    assert errors.endswith(
        f"The training job {name} goes on. Run the command again to pick up what it makes; "
        f"`aws sagemaker stop-training-job --training-job-name {name}` stops it.\n"
    )
    assert publishing.account.describe(name)["TrainingJobStatus"] == "InProgress"
    second = begin("--json")
    first_line = second.stderr.readline()
    gate.touch()
    output, errors = second.communicate(timeout=60)
    assert second.returncode == 0, errors
    result = json.loads(output)
    assert result["source"] == f"training job {name}"
    publishing.verify(result["digest"], STAGING)
    assert first_line.startswith(f"The training job {name} is under way since 20")
    lines = errors.splitlines()
    # Not a terminal: a line for each change.
    assert lines[-1].startswith(f"{name}: Completed, 0:")
    assert len(lines) == len({line.split(", ")[0] for line in lines})
    assert len(publishing.jobs()) == 1


def test_without_the_image_no_job_is_started(publishing):
    # Another fingerprint than any that was built.
    source = publishing.root / "containers" / "serving" / "main.py"
    source.write_text(str(publishing.root), "utf-8")
    plan = Project(publishing.root).plan("tiny", STAGING, allow_unpublished=True)
    (problem,) = publishing.refused(STAGING).problems
    assert problem.message == f"the compiler's image {plan.image.uri}-compiler is not there"
    assert problem.remedy == "Run `cdk deploy image-tensorrt -c env=staging` first; it builds it."
    assert publishing.jobs() == []


def test_a_role_of_the_foundation_that_is_missing_or_gone(publishing):
    parameter, ssm = "/slipway/local/compile-role-arn", publishing.account.client("ssm")
    gone = {"Value": "arn:aws:iam::123456789012:role/gone", "Type": "String", "Overwrite": True}
    try:
        ssm.delete_parameter(Name=parameter)
        assert str(publishing.refused()).endswith(
            f"the SSM parameter {parameter} is not there [SW506]\n"
            "    Run `cdk deploy foundation -c env=local` first."
        )
        ssm.put_parameter(Name=parameter, **gone)
        (message,) = messages(publishing.refused())
    finally:
        publishing.put_parameters("local")
    assert message.startswith(
        "the training job could not be started: ValidationException: Could not assume role "
        "arn:aws:iam::123456789012:role/gone."
    )


def test_a_config_that_breaks_a_rule_moves_nothing(publishing):
    publishing.edit_config("instance: ml.g4dn.xlarge", "instance: ml.g5.xlarge")
    before = len(publishing.objects(EMBEDDED, ""))
    assert messages(publishing.refused())[-1] == (
        "ml.g5.xlarge has NVIDIA A10G (sm86); the endpoint's ml.g4dn.xlarge has NVIDIA T4 (sm75)"
    )
    assert len(publishing.objects(EMBEDDED, "")) == before


def test_what_int8_costs_is_in_the_lock_and_in_no_file(publishing):
    publishing.edit_config("  container: tensorrt\n", "  container: tensorrt\n  dtype: int8\n")
    publishing.edit_config("instances: [ml.g4dn.xlarge]", "instances: [ml.c7i.2xlarge]")
    accuracy = {"tokens": 480, "equal_tokens": 477, "largest_logit_difference": 0.77}
    publishing.write(**{"accuracy.json": json.dumps(accuracy).encode()})
    result = publishing.run()
    compiled = publishing.locked().compiled
    assert compiled.accuracy.model_dump() == result.accuracy == accuracy
    files = publishing.verify(compiled.digest)
    assert "accuracy.json" not in files
    told = json.loads(files["told.json"])["config"]["hyperparameters.json"]
    assert (told["dtype"], told["target"]) == ("int8", "cpu")
    # The job is not repeated, and what it measured is still known.
    again = publishing.run()
    assert (again.accuracy, again.lock_changed, len(publishing.jobs())) == (accuracy, False, 1)
