"""The least rights that `slipway prune` needs in one environment, as a policy of IAM."""

from typing import Any

from slipway.config.environments import Environment
from slipway.planning.artifact_place import OUTPUT_PREFIX
from slipway.planning.statements import allow, policy_document
from slipway.rights.statements import Place


def prune_policy(environment: Environment) -> dict[str, Any]:
    """Returns the policy to find and delete what nothing refers to."""
    place = Place(environment)
    bucket = f"arn:{place.partition}:s3:::{environment.artifact_bucket}"
    repositories = place.arn("ecr", f"repository/{environment.repository_prefix}*")
    statements = [
        allow("FindArtifacts", ["s3:ListBucket", "s3:ListBucketMultipartUploads"], bucket),
        # An LMI package names its weights in serving.properties.
        allow("ReadPackages", ["s3:GetObject"], f"{bucket}/*/files/serving.properties"),
        # Every key, but only for objects of the bucket: isolated models have their own keys. S3
        # gives the bucket as context where bucket keys are on, else the object.
        allow(
            "UseArtifactKeys",
            ["kms:Decrypt"],
            place.arn("kms", "key/*"),
            StringLike={"kms:EncryptionContext:aws:s3:arn": [bucket, f"{bucket}/*"]},
        ),
        allow(
            "DeleteArtifacts",
            ["s3:DeleteObject"],
            *(f"{bucket}/{prefix}*" for prefix in ("artifacts/", "models/", OUTPUT_PREFIX)),
        ),
        allow("EndUploads", ["s3:AbortMultipartUpload"], f"{bucket}/*"),
        allow("FindRepositories", ["ecr:DescribeRepositories"], "*"),
        allow("DeleteImages", ["ecr:BatchDeleteImage", "ecr:DescribeImages"], repositories),
        allow(
            "ReadReferences",
            ["sagemaker:DescribeModel", "sagemaker:DescribeTrainingJob"],
            place.arn("sagemaker", "model/*"),
            place.arn("sagemaker", "training-job/*"),
        ),
        allow("ReadTemplates", ["cloudformation:GetTemplate"], place.arn("cloudformation", "*")),
        allow(
            "ListWhatHasNoNarrowerResource",
            [
                "cloudformation:DescribeStacks",
                "sagemaker:ListModels",
                "sagemaker:ListTrainingJobs",
            ],
            "*",
        ),
    ]
    return policy_document(statements)
