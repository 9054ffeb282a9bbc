"""The permissions boundary of the roles in a stack."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam


def limit_roles(stack: cdk.Stack, boundary_arn: str | None) -> None:
    """Gives every role of a stack a permissions boundary, if there is one."""
    if boundary_arn is not None:
        policy = iam.ManagedPolicy.from_managed_policy_arn(stack, "Boundary", boundary_arn)
        iam.PermissionsBoundary.of(stack).apply(policy)
