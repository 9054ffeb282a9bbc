"""Rights that an execution role has for one setting of its endpoint, such as a VPC."""

import hashlib
import json
from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from stacks.constructs.statements import acknowledge_wildcards


class ModeRights(Construct):
    """A policy that is made before the new fleet starts, and deleted after the old one is gone.

    CloudFormation changes a role before the endpoint. Rights in the role itself would be taken from
    a fleet that still runs, for example when the endpoint leaves its VPC. The policy's logical id
    therefore follows from its content: other rights are another policy, beside the old one until
    the endpoint has moved.

    Attributes:
        policy: what the model must depend on.

    Args:
        scope: the endpoint's stack.
        construct_id: name of the setting.
        role: the execution role.
        statements: the rights.
        reasons: for each wildcard in a resource of the statements.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        role: iam.Role,
        statements: Sequence[iam.PolicyStatement],
        reasons: Mapping[str, str],
    ) -> None:
        super().__init__(scope, construct_id)
        document = iam.PolicyDocument(statements=list(statements))
        rendered = json.dumps(cdk.Stack.of(self).resolve(document.to_json()), sort_keys=True)
        name = f"{construct_id}{hashlib.sha256(rendered.encode()).hexdigest()[:8]}"
        self.policy = iam.CfnPolicy(
            self, "Policy", policy_name=name, policy_document=document, roles=[role.role_name]
        )
        self.policy.override_logical_id(f"Rights{name}")
        acknowledge_wildcards(self.policy, reasons)
