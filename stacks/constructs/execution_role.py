"""The role with which SageMaker runs a model, and its rights for settings such as a VPC."""

import hashlib
import json

import aws_cdk as cdk
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


class ModeRights(Construct):
    """A policy that is made before the new fleet starts, and deleted after the old one is gone.

    CloudFormation changes a role before the endpoint. Rights in the role itself would be taken from
    a fleet that still runs, for example when the endpoint leaves its VPC. The policy's logical id
    therefore follows from its content: other rights are another policy, beside the old one until
    the endpoint has moved.
    """

    def __init__(self, scope: Construct, policy: RolePolicy, *, role: iam.Role) -> None:
        super().__init__(scope, policy.name)
        self.role = role
        document = document_of(policy.statements)
        rendered = json.dumps(cdk.Stack.of(self).resolve(document.to_json()), sort_keys=True)
        name = f"{policy.name}{hashlib.sha256(rendered.encode()).hexdigest()[:8]}"
        self.policy = iam.CfnPolicy(
            self, "Policy", policy_name=name, policy_document=document, roles=[role.role_name]
        )
        # Another construct of the stack may have the same rights, for another role.
        place = "" if cdk.Stack.is_stack(scope) else scope.node.addr[-8:]
        self.policy.override_logical_id(f"Rights{name}{place}")
        acknowledge_wildcards(self.policy, policy.reasons)
