"""The role with which SageMaker runs a model."""

from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.planning.plan import DeploymentPlan
from slipway.planning.rights import RightsPolicy
from stacks.constructs.statements import acknowledge_wildcards, statements_of


class ExecutionRole(Construct):
    """The role that Slipway makes where a config names no existing role."""

    def __init__(
        self, scope: Construct, construct_id: str, *, plan: DeploymentPlan, serving: RightsPolicy
    ) -> None:
        super().__init__(scope, construct_id)
        document = iam.PolicyDocument(statements=statements_of(serving.rights))
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
            description=f"Runs {plan.stack_name}",
            # Inline, so that the role never exists without its rights (SageMaker checks at once).
            inline_policies={serving.name: document},
        )
        acknowledge_wildcards(self.role, serving.reasons)
