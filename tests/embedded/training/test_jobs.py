"""Training jobs really run the container's program, from S3 to S3, with SageMaker's statuses."""

import io
import json
import tarfile
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.server import EmbeddedAws
from tests.embedded.hosting.conftest import Role, may, refused
from tests.embedded.training import composition
from tests.embedded.training.conftest import Account
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.processes import is_running
from tests.support.starts import count_start
from tests.support.waiting import eventually


def test_a_job_goes_from_weights_to_model_with_every_status(account):
    found = account.done(Tags=[{"Key": "team", "Value": "search"}])
    name = found["TrainingJobName"]
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Completed", "Completed")
    assert [item["Status"] for item in found["SecondaryStatusTransitions"]] == [
        "Starting", "Downloading", "Training", "Uploading", "Completed",
    ]  # fmt: skip
    assert all("EndTime" in item for item in found["SecondaryStatusTransitions"])
    assert found["SecondaryStatusTransitions"][1]["StatusMessage"] == "Downloading input data"
    assert found["ModelArtifacts"] == {
        "S3ModelArtifacts": f"s3://training/compile/{name}/output/model/"
    }
    assert found["TrainingStartTime"] <= found["TrainingEndTime"]
    assert "FailureReason" not in found
    files = account.files(f"compile/{name}/output/")
    assert sorted(files) == [
        "data/report.txt", "model/config.json", "model/mode", "model/shards/1.bin",
        "model/told.json",
    ]  # fmt: skip
    assert files["model/shards/1.bin"] == b"weights"
    assert account.log_lines(name) == ["compiling as ok: compile"]
    tags = account.sagemaker.list_tags(ResourceArn=found["TrainingJobArn"])["Tags"]
    assert tags == [{"Key": "team", "Value": "search"}]
    # Nothing of the job is left on the machine but its log.
    assert list((account.directory / "training").iterdir()) == []


@pytest.mark.usefixtures("users_profile")
def test_the_program_sees_what_a_container_sees(account, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    found = account.done(
        HyperParameters={"target": "sm75", "max_batch_size": "8"},
        Environment={"OWN": "variable"},
    )
    name = found["TrainingJobName"]
    told = json.loads(account.files(f"compile/{name}/output/model/")["told.json"])
    assert told["arguments"] == ["compile"]
    assert told["config"]["hyperparameters.json"] == {"target": "sm75", "max_batch_size": "8"}
    assert told["config"]["inputdataconfig.json"] == {
        "weights": {
            "TrainingInputMode": "File",
            "S3DistributionType": "FullyReplicated",
            "RecordWrapperType": "None",
        }
    }
    assert told["config"]["resourceconfig.json"]["current_instance_type"] == "ml.g4dn.xlarge"
    environment = told["environment"]
    assert environment["TRAINING_JOB_NAME"] == name
    assert environment["TRAINING_JOB_ARN"] == found["TrainingJobArn"]
    assert environment["OWN"] == "variable"
    assert environment["FROM_IMAGE"] == "yes"
    assert environment["AWS_ENDPOINT_URL"] == account.url
    assert not {"AWS_CONFIG_FILE", "AWS_PROFILE", "HF_TOKEN"} & set(environment)


def test_an_isolated_job_has_no_aws(account):
    found = account.done(EnableNetworkIsolation=True)
    assert found["EnableNetworkIsolation"] is True
    files = account.files(f"compile/{found['TrainingJobName']}/output/model/")
    environment = json.loads(files["told.json"])["environment"]
    assert not [name for name in environment if name.startswith("AWS_") and "REGION" not in name]


def test_without_a_compression_type_the_model_is_an_archive(account):
    found = account.done(OutputDataConfig={"S3OutputPath": "s3://training/archives"})
    name = found["TrainingJobName"]
    assert found["ModelArtifacts"]["S3ModelArtifacts"] == (
        f"s3://training/archives/{name}/output/model.tar.gz"
    )
    files = account.files(f"archives/{name}/output/")
    assert sorted(files) == ["model.tar.gz", "output.tar.gz"]
    with tarfile.open(fileobj=io.BytesIO(files["model.tar.gz"])) as tar:
        assert sorted(tar.getnames()) == ["config.json", "mode", "shards/1.bin", "told.json"]


def test_a_failure_has_what_the_program_wrote_of_it_or_points_to_the_log(account):
    found = account.done("fail")
    assert (found["TrainingJobStatus"], found["SecondaryStatus"]) == ("Failed", "Failed")
    assert found["FailureReason"] == (
        "AlgorithmError: config.json has model_type bert: only gpt2 is compiled, exit code: 1"
    )
    assert "ModelArtifacts" not in found
    assert account.files(f"compile/{found['TrainingJobName']}/") == {}
    found = account.done("crash")
    assert found["FailureReason"] == (
        "AlgorithmError: See job logs for more information, exit code: 3"
    )
    assert account.log_lines(found["TrainingJobName"])[-1] == "Killed"


def test_a_stopped_job_shows_that_it_is_stopping_and_saves(account):
    name = account.start("slow")
    account.pid(name)
    account.sagemaker.stop_training_job(TrainingJobName=name)
    found = account.ended(name)
    assert found["TrainingJobStatus"] == "Stopped"
    statuses = [item["Status"] for item in found["SecondaryStatusTransitions"]]
    assert statuses == ["Starting", "Downloading", "Training", "Stopping", "Stopped"]
    assert "saved" in account.files(f"compile/{name}/output/model/")
    with pytest.raises(ClientError, match="because the training job is in status Stopped"):
        account.sagemaker.stop_training_job(TrainingJobName=name)


def test_output_that_cannot_be_stored_fails_the_job(account):
    found = account.done(
        OutputDataConfig={"S3OutputPath": "s3://no-such-bucket/x", "CompressionType": "NONE"}
    )
    assert found["TrainingJobStatus"] == "Failed"
    assert found["FailureReason"].startswith("ClientError: Artifact upload failed: ")
    assert "NoSuchBucket" in found["FailureReason"]


def test_names_are_taken_for_ever(account):
    request = account.request()
    account.sagemaker.create_training_job(**request)
    account.ended(request["TrainingJobName"])
    with pytest.raises(account.sagemaker.exceptions.ResourceInUse) as caught:
        account.sagemaker.create_training_job(**request)
    assert caught.value.response["Error"]["Message"] == (
        "Training job names must be unique within an AWS account and region, and a training job "
        "with this name already exists (arn:aws:sagemaker:us-east-1:123456789012:training-job/"
        f"{request['TrainingJobName']})"
    )


def test_a_job_that_is_not_there(account):
    for call in (account.sagemaker.describe_training_job, account.sagemaker.stop_training_job):
        assert refused(call, TrainingJobName="absent") == "Requested resource not found."


def test_lists_begin_with_the_oldest_and_filter(account):
    first, second = account.start(), account.start("fail")
    account.ended(first)
    account.ended(second)

    def names(**parameters: Any) -> list[str]:
        pages = account.sagemaker.get_paginator("list_training_jobs").paginate(**parameters)
        return [item["TrainingJobName"] for page in pages for item in page["TrainingJobSummaries"]]

    listed = names()
    assert listed.index(first) < listed.index(second)
    assert names(NameContains=second) == [second]
    assert second in names(StatusEquals="Failed")
    assert first not in names(StatusEquals="Failed")
    assert names(SortOrder="Descending")[0] == second


def algorithm(image: str, mode: str = "File") -> dict[str, Any]:
    return {"AlgorithmSpecification": {"TrainingImage": image, "TrainingInputMode": mode}}


def resources(instance_type: str, count: int, **more: int) -> dict[str, Any]:
    return {
        "ResourceConfig": {"InstanceType": instance_type, "InstanceCount": count, **more},
    }


UNKNOWN = "123456789012.dkr.ecr.us-east-1.amazonaws.com/slipway/other:1"
ELSEWHERE = Account.image.replace("us-east-1", "eu-west-1")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"RoleArn": "arn:aws:iam::123456789012:role/absent"},
            "Could not assume role arn:aws:iam::123456789012:role/absent. Please ensure",
        ),
        ({"TrainingJobName": "under_score"}, "Value 'under_score' at 'trainingJobName' failed"),
        ({"StoppingCondition": {}}, "A training job needs a StoppingCondition."),
        (resources("ml.g4dn.xlarge", 1), "ResourceConfig needs VolumeSizeInGB."),
        (
            resources("ml.inf1.xlarge", 1, VolumeSizeInGB=1),
            "Value 'ml.inf1.xlarge' at 'resourceConfig.instanceType' failed to satisfy constraint",
        ),
        (
            resources("ml.g4dn.xlarge", 2, VolumeSizeInGB=1),
            "The embedded AWS does not emulate training on several instances.",
        ),
        (
            {"EnableManagedSpotTraining": True},
            "The embedded AWS does not emulate EnableManagedSpotTraining (spot capacity). "
            "docs/embedded-aws/services.md lists what it does.",
        ),
        (
            algorithm(UNKNOWN),
            f"No program of the embedded AWS stands for image {UNKNOWN}. Known repositories: "
            "djl-inference, slipway/tensorrt, tests/compiler, tests/server.",
        ),
        (
            algorithm(Account.server_image),
            f"No training job runs in image {Account.server_image}.",
        ),
        (algorithm(Account.image, "Pipe"), "does not emulate TrainingInputMode Pipe"),
        (
            algorithm(ELSEWHERE),
            "Invalid DNS suffix 'amazonaws.com' for region 'eu-west-1' in training image. Please "
            "provide the valid <region>.<dns-suffix>: 'us-east-1.amazonaws.com'",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(account, changes, message):
    assert message in refused(account.start, **changes)


def test_a_channel_must_have_objects(account):
    channel = account.request()["InputDataConfig"][0]
    channel["DataSource"]["S3DataSource"]["S3Uri"] = "s3://training/nothing/"
    assert refused(account.start, InputDataConfig=[channel]) == (
        'No S3 objects found under S3 URL "s3://training/nothing/" given in input data source. '
        "Please ensure that the bucket exists in the selected region (us-east-1), that objects "
        "exist under that S3 prefix, and that the role "
        '"arn:aws:iam::123456789012:role/compiling" has "s3:ListBucket" permissions on bucket '
        '"training".'
    )


def test_no_job_outlives_the_embedded_aws(tmp_path):
    count_start("server")
    options = {"secret_access_key": SECRET_ACCESS_KEY, "programs": composition.PROGRAMS}
    with EmbeddedAws(port=0, directory=tmp_path, **options) as server:
        account = Account(server.connection.url, tmp_path)
        pid = account.pid(account.start("stubborn"))
    # At once: a job has no time to save what would be gone anyway.
    eventually(lambda: not is_running(pid), 10)
    assert list((tmp_path / "training").iterdir()) == []


BUCKET = "arn:aws:s3:::training"
READ = may("s3:GetObject", on=f"{BUCKET}/weights/*")
LIST = may("s3:ListBucket", on=BUCKET, Condition={"StringLike": {"s3:prefix": "weights/*"}})
WRITE = may("s3:PutObject", on=f"{BUCKET}/compile/*")


def allowed(account: Account, *statements: dict[str, Any]) -> str:
    role = Role(account)
    role.allow(*statements)
    return role.arn


def test_a_role_with_its_own_prefixes_does_the_job(account):
    found = account.done(RoleArn=allowed(account, READ, LIST, WRITE))
    assert found["TrainingJobStatus"] == "Completed"
    message = refused(account.start, RoleArn=allowed(account, READ, WRITE))
    assert message.startswith("No S3 objects found under S3 URL")


@pytest.mark.parametrize(
    ("statements", "reason"),
    [((LIST, WRITE), "Data download failed"), ((LIST, READ), "Artifact upload failed")],
)
def test_a_job_fails_where_its_role_may_not_read_or_write(account, statements, reason):
    found = account.done(RoleArn=allowed(account, *statements))
    assert found["TrainingJobStatus"] == "Failed"
    assert f"ClientError: {reason}: An error occurred (AccessDenied)" in found["FailureReason"]
