"""The role of the training jobs that compile models."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.config.environments import Environment
from slipway.planning.artifact_place import ArtifactPlace
from slipway.planning.families import FAMILIES
from slipway.planning.statements import (
    TRAINING_JOBS,
    allow,
    publish_metrics,
    pull_images,
    read_objects,
    write_logs_of_machines,
)
from slipway.stacks.constructs.statements import acknowledge_wildcards, document_of, trusted

_LOG_GROUP = "/aws/sagemaker/TrainingJobs"


class CompileRole(Construct):
    """May read artifacts, write compiled files, pull images, write logs and metrics, and no more.

    The container has none of these rights: its job is isolated from the network. SageMaker uses
    them to bring the weights in and the result out.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        environment: Environment,
        artifact_key_arn: str,
        place: ArtifactPlace,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        bucket_arn = f"arn:{stack.partition}:s3:::{environment.artifact_bucket}"
        here = f"{environment.region}:{environment.account}"
        images_of_aws = [
            f"arn:{stack.partition}:ecr:{environment.region}:{account}:repository/{repository}"
            for family in FAMILIES.values()
            for account, repository in family.compiler_images(environment.region)
        ]
        repositories_arn = (
            f"arn:{stack.partition}:ecr:{here}:repository/{environment.repository_prefix}*"
        )
        log_group_arn = f"arn:{stack.partition}:logs:{here}:log-group:{_LOG_GROUP}"
        rights = [
            *read_objects("Weights", bucket_arn, place.artifacts_prefix),
            allow(
                "WriteOutput",
                ["s3:AbortMultipartUpload", "s3:PutObject"],
                f"{bucket_arn}/{place.output_prefix}*",
            ),
            allow(
                "UseArtifactKey",
                ["kms:Decrypt", "kms:Encrypt", "kms:GenerateDataKey"],
                artifact_key_arn,
            ),
            *pull_images("PullImages", repositories_arn, *images_of_aws),
            # All training jobs of an account share one log group, which SageMaker creates.
            allow("MakeLogGroup", ["logs:CreateLogGroup"], f"{log_group_arn}:*"),
            write_logs_of_machines(f"{log_group_arn}:*"),
            publish_metrics(TRAINING_JOBS),
        ]
        self.role = iam.Role(
            self,
            "Role",
            # Each job has a name of its own.
            assumed_by=trusted(self, "sagemaker", environment.account, "training-job/*"),
            description=f"Compiles the models of {environment.name}",
            inline_policies={"Compiling": document_of(rights)},
        )
        acknowledge_wildcards(
            self.role,
            {
                f"{bucket_arn}/{place.artifacts_prefix}*": "Weights lie under their digest.",
                f"{bucket_arn}/{place.output_prefix}*": "Each job has a folder of its name.",
                repositories_arn: "Only the images that Slipway builds.",
                "*": "ECR's log-in token is the account's, and PutMetricData has no resources: "
                "its condition names the namespace.",
                f"{log_group_arn}:*": "SageMaker names the streams after the jobs.",
            },
        )
