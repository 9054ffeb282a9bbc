"""What a compile job asks SageMaker for: with a channel of weights, or one of settings besides."""

from typing import Any

from slipway.planning.compiling import CompilePlan
from slipway.planning.plan import ImagePlan
from slipway.publishing.training import CompileJob

BUCKET = "s3://slipway-production-210987654321-eu-west-1"


def plan(**changes: Any) -> CompilePlan:
    given: dict[str, Any] = {
        "target": "sm86",
        "compiler": "any",
        "image": ImagePlan("2" * 12, "eu-west-1", "any", "tag"),
        "instance_type": "ml.g5.12xlarge",
        "volume_size_gb": 70,
        "max_runtime_seconds": 3600,
        "hyperparameters": {"target": "sm86"},
    }
    return CompilePlan(**given | changes)


def request(compiling: CompilePlan, settings_uri: str | None = None) -> dict[str, Any]:
    job = CompileJob(
        model="tiny",
        key="0123456789abcdef",
        plan=compiling,
        weights_uri=f"{BUCKET}/artifacts/cd/files/",
        settings_uri=settings_uri,
        output_uri=f"{BUCKET}/compile/",
        role_arn="arn:aws:iam::210987654321:role/compiling",
        key_arn="arn:aws:kms:eu-west-1:210987654321:key/any",
        tags={"team": "language", "owner": "ml"},
    )
    return job.request(1)


def channel(name: str, uri: str) -> dict[str, Any]:
    return {
        "ChannelName": name,
        "CompressionType": "None",
        "InputMode": "File",
        "DataSource": {
            "S3DataSource": {
                "S3DataType": "S3Prefix",
                "S3Uri": uri,
                "S3DataDistributionType": "FullyReplicated",
            }
        },
    }


COMPILED = {
    "TrainingJobName": "compile-tiny-0123456789ab",
    "AlgorithmSpecification": {
        "TrainingImage": f"{'2' * 12}.dkr.ecr.eu-west-1.amazonaws.com/any:tag",
        "TrainingInputMode": "File",
        "ContainerArguments": ["compile"],
    },
    "HyperParameters": {"target": "sm86"},
    "InputDataConfig": [channel("weights", f"{BUCKET}/artifacts/cd/files/")],
    "OutputDataConfig": {
        "S3OutputPath": f"{BUCKET}/compile/",
        "CompressionType": "NONE",
        "KmsKeyId": "arn:aws:kms:eu-west-1:210987654321:key/any",
    },
    "ResourceConfig": {
        "InstanceType": "ml.g5.12xlarge",
        "InstanceCount": 1,
        "VolumeSizeInGB": 70,
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "RoleArn": "arn:aws:iam::210987654321:role/compiling",
    "EnableNetworkIsolation": True,
    "Tags": [{"Key": "owner", "Value": "ml"}, {"Key": "team", "Value": "language"}],
}


def test_a_job_that_compiles():
    assert request(plan()) == COMPILED


def test_a_job_that_partitions_has_settings_and_arguments_of_its_own():
    arguments = ("partition", "--model-dir", "/opt/ml/input/data/settings")
    partitioning = plan(
        hyperparameters={}, arguments=arguments, settings={"serving.properties": b"engine=any\n"}
    )
    found = request(partitioning, f"{BUCKET}/artifacts/ab/files/")
    assert found == COMPILED | {
        "AlgorithmSpecification": {
            **COMPILED["AlgorithmSpecification"],  # type: ignore[dict-item]
            "ContainerArguments": list(arguments),
        },
        "HyperParameters": {},
        "InputDataConfig": [
            channel("weights", f"{BUCKET}/artifacts/cd/files/"),
            channel("settings", f"{BUCKET}/artifacts/ab/files/"),
        ],
    }
