"""What refuses a deployment over another project's foundation, or over a newer one."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from slipway.config.environments import Environment

RESOURCE_TYPE = "Custom::SlipwayFoundation"
# Raised with each change of the foundation's template, so that a working copy that is behind cannot
# take the change back. tests/golden/foundation-version.json says which template has which version.
FOUNDATION_VERSION = 1
_PROGRAM = Path(__file__).parents[1] / "foundation_guard" / "handler.py"
_RUNTIME = "python3.14"
_FUNCTION_TIMEOUT_SECONDS = 60
# CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 300
_LOG_RETENTION = logs.RetentionDays.THREE_MONTHS


class FoundationGuard(Construct):
    """A function, and the custom resource that has it called before anything else is deployed.

    Args:
        scope: the foundation.
        construct_id: name within it.
        environment: whose project and bucket are compared.

    Attributes:
        request: the custom resource, which every other resource depends on.
    """

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        function = self._function(environment)
        self.request = cdk.CustomResource(
            self,
            "Request",
            service_token=function.attr_arn,
            resource_type=RESOURCE_TYPE,
            service_timeout=cdk.Duration.seconds(_SERVICE_TIMEOUT_SECONDS),
            properties={
                "Project": environment.project,
                "Version": str(FOUNDATION_VERSION),
                "ArtifactBucket": environment.artifact_bucket,
                "ArtifactKeyArn": environment.artifact_key_arn or "",
            },
        )

    def _function(self, environment: Environment) -> lambda_.CfnFunction:
        log_group = logs.LogGroup(
            self, "Log", retention=_LOG_RETENTION, removal_policy=cdk.RemovalPolicy.DESTROY
        )
        with tempfile.TemporaryDirectory() as folder:
            # Alone: not the caches that lie beside it.
            shutil.copyfile(_PROGRAM, Path(folder) / "handler.py")
            code = assets.Asset(self, "Code", path=folder)
        return lambda_.CfnFunction(
            self,
            "Function",
            description="Slipway: compares owner and version before a foundation is deployed",
            code=lambda_.CfnFunction.CodeProperty(
                s3_bucket=code.s3_bucket_name, s3_key=code.s3_object_key
            ),
            handler="handler.handler",
            runtime=_RUNTIME,
            role=self._role(environment, log_group).role_arn,
            logging_config=lambda_.CfnFunction.LoggingConfigProperty(
                log_group=log_group.log_group_name
            ),
            timeout=_FUNCTION_TIMEOUT_SECONDS,
        )

    def _role(self, environment: Environment, log_group: logs.LogGroup) -> iam.Role:
        stack = cdk.Stack.of(self)
        bucket_arn = f"arn:{stack.partition}:s3:::{environment.artifact_bucket}"
        statements = [
            _allow("SeeTheStack", ["cloudformation:DescribeStacks"], stack.stack_id),
            _allow("SeeTheBucketsKey", ["s3:GetEncryptionConfiguration"], bucket_arn),
            # The group's ARN ends in `:*`: its streams.
            _allow(
                "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log_group.log_group_arn
            ),
        ]
        return iam.Role(
            self,
            "Role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            description="Compares owner and version before a foundation is deployed",
            # Inline, so that the role never exists without its rights.
            inline_policies={"Comparing": iam.PolicyDocument(statements=statements)},
        )


def _allow(sid: str, actions: list[str], *resources: str) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=actions, resources=list(resources))
