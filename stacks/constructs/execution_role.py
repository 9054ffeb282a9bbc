"""The role with which SageMaker runs a model."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.planning.plan import DeploymentPlan
from slipway.planning.statements import RolePolicy
from slipway.stacks.constructs.statements import acknowledge_wildcards, document_of, trusted


class ExecutionRole(Construct):
    """The role that Slipway makes where a config names no existing role."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, serving: RolePolicy
    ) -> None:
        super().__init__(scope, construct_id)
        self.role = iam.Role(
            self,
            "Role",
            # SageMaker names no endpoint and no model, but this very text with its asterisk:
            # https://docs.aws.amazon.com/sagemaker/latest/dg/security-confused-deputy-prevention.html
            # ("SageMaker AI Inference", 2026-11-22).
            assumed_by=trusted(self, "sagemaker", plan.environment.account, "*"),
            description=f"Runs {plan.stack_name}",
            # Inline, so that the role never exists without its rights (SageMaker checks at once).
            inline_policies={serving.name: document_of(serving.statements)},
        )
        acknowledge_wildcards(self.role, serving.reasons)
