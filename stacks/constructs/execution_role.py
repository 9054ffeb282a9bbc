"""The role that SageMaker runs a model with."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.planning.plan import DeploymentPlan


class ExecutionRole(Construct):
    """Read the artifacts, pull one image, write to one log group; nothing else.

    It does not name an artifact: the role is updated before the endpoint, so a digest in it would
    cut the running fleet off from its own weights during an update. It cannot create log groups,
    or a container that dies late would bring back the group that was just deleted.

    Args:
        scope: the endpoint's stack.
        construct_id: name within it.
        plan: what is deployed.
        artifact_key_arn: the key the artifacts are encrypted with.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, artifact_key_arn: str
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        bucket_arn = f"arn:{stack.partition}:s3:::{plan.artifact.bucket}"
        repository_arn = (
            f"arn:{stack.partition}:ecr:{plan.image.region}:{plan.image.account}"
            f":repository/{plan.image.repository}"
        )
        log_group_arn = (
            f"arn:{stack.partition}:logs:{plan.region}:{plan.account}"
            f":log-group:{plan.log_group_name}"
        )
        statements = [
            _allow("ReadArtifacts", ["s3:GetObject"], f"{bucket_arn}/artifacts/*"),
            _allow(
                "ListArtifacts",
                ["s3:ListBucket"],
                bucket_arn,
                {"StringLike": {"s3:prefix": "artifacts/*"}},
            ),
            _allow("DecryptArtifacts", ["kms:Decrypt"], artifact_key_arn),
            _allow(
                "PullImage",
                [
                    "ecr:BatchCheckLayerAvailability",
                    "ecr:BatchGetImage",
                    "ecr:GetDownloadUrlForLayer",
                ],
                repository_arn,
            ),
            # ECR's log-in token is the account's: the API knows no narrower resource.
            _allow("LogInToRegistry", ["ecr:GetAuthorizationToken"], "*"),
            _allow(
                "WriteLogs",
                ["logs:CreateLogStream", "logs:PutLogEvents"],
                f"{log_group_arn}:log-stream:*",
            ),
        ]
        self.role = iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"),
            description=f"Runs {plan.endpoint_name}",
            # Inline, so that the role never exists without its rights (SageMaker checks at once).
            inline_policies={"Serving": iam.PolicyDocument(statements=statements)},
        )


def _allow(
    sid: str,
    actions: list[str],
    resource: str,
    conditions: dict[str, dict[str, str]] | None = None,
) -> iam.PolicyStatement:
    return iam.PolicyStatement(
        sid=sid, actions=actions, resources=[resource], conditions=conditions
    )
