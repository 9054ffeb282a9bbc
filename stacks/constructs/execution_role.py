"""The role with which SageMaker runs a model."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.config.alarm_kinds import MACHINES
from slipway.planning.plan import DeploymentPlan
from stacks.constructs import machine_metrics
from stacks.constructs.statements import (
    acknowledge_wildcards,
    allow,
    pull_images,
    read_objects,
    write_logs_of_machines,
)


class ExecutionRole(Construct):
    """May read artifacts, pull one image, write one log group and machine metrics, and no more.

    It may read the artifacts of every model that shares the place, or an isolated model's own.

    The role does not name a single artifact. CloudFormation updates the role before the endpoint,
    so a digest in it would cut the running fleet off from its own weights during an update. The
    role cannot create log groups. Otherwise a container that ends late would create the deleted
    group again.

    Args:
        scope: the endpoint's stack.
        construct_id: name within the scope.
        plan: the image, the artifact's place and the log group.
        artifact_key_arn: the key that encrypts the artifacts.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, artifact_key_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        place = plan.artifact_place
        bucket_arn = f"arn:{stack.partition}:s3:::{place.bucket}"
        repository_arn = (
            f"arn:{stack.partition}:ecr:{plan.image.region}:{plan.image.account}"
            f":repository/{plan.image.repository}"
        )
        log_group_arn = (
            f"arn:{stack.partition}:logs:{plan.region}:{plan.account}"
            f":log-group:{plan.log_group_name}"
        )
        statements = [
            *read_objects("Artifacts", bucket_arn, place.artifacts_prefix),
            allow("DecryptArtifacts", ["kms:Decrypt"], artifact_key_arn),
            *pull_images("PullImage", repository_arn),
            write_logs_of_machines(f"{log_group_arn}:*"),
            machine_metrics.may_publish(
                MACHINES.namespace, *(() if plan.component is None else (machine_metrics.COPIES,))
            ),
        ]
        self.role = iam.Role(
            self,
            "Role",
            # SageMaker names the account for which it assumes a role:
            # https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
            # ("SageMaker AI Inference", 2026-11-22).
            assumed_by=iam.ServicePrincipal(
                "sagemaker.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": plan.account}},
            ),
            description=f"Runs {plan.endpoint_name}",
            # Inline, so that the role never exists without its rights (SageMaker checks at once).
            inline_policies={"Serving": iam.PolicyDocument(statements=statements)},
        )
        acknowledge_wildcards(
            self.role,
            {
                f"{bucket_arn}/{place.artifacts_prefix}*": (
                    "A digest here would cut the running fleet off."
                ),
                "*": "ECR's log-in token is the account's, and PutMetricData has no resources: "
                "its condition names the namespace.",
                f"{log_group_arn}:*": "SageMaker names the streams, one per instance.",
            },
        )
