"""Refuses a deployment over another project's foundation, or over a newer foundation."""

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from slipway.config.environments import Environment
from slipway.planning.statements import allow
from slipway.stacks.constructs.handler_function import add_handler_function

RESOURCE_TYPE = "Custom::SlipwayFoundation"
# Raised with each change of the foundation's template, so that an outdated working copy cannot undo
# the change. tests/golden/foundation-version.json maps templates to versions.
FOUNDATION_VERSION = 1
_FUNCTION_TIMEOUT_SECONDS = 60
# Otherwise CloudFormation would wait for an hour if the function died without an answer.
_SERVICE_TIMEOUT_SECONDS = 300


class FoundationGuard(Construct):
    """A function, and the custom resource that has it called before anything else is deployed."""

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
        stack = cdk.Stack.of(self)
        bucket_arn = f"arn:{stack.partition}:s3:::{environment.artifact_bucket}"
        return add_handler_function(
            self,
            module="foundation_guard",
            description="Slipway: compares owner and version before a foundation is deployed",
            timeout_seconds=_FUNCTION_TIMEOUT_SECONDS,
            role_description="Compares owner and version before a foundation is deployed",
            policy_name="Comparing",
            statements=[
                allow("SeeTheStack", ["cloudformation:DescribeStacks"], stack.stack_id),
                allow("SeeTheBucketsKey", ["s3:GetEncryptionConfiguration"], bucket_arn),
            ],
            # The foundation's own key does not exist yet, because everything else waits for the
            # guard.
            log_key_arn=environment.known_log_key_arn,
            log_id="Log",
            role_id="Role",
        ).resource
