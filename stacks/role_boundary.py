"""The permissions boundary of the roles in a stack or a construct."""

from aws_cdk import aws_iam as iam
from constructs import Construct


def limit_roles(scope: Construct, boundary_arn: str | None) -> None:
    """Gives every role of a stack or a construct a permissions boundary, if there is one."""
    if boundary_arn is not None:
        policy = iam.ManagedPolicy.from_managed_policy_arn(scope, "Boundary", boundary_arn)
        iam.PermissionsBoundary.of(scope).apply(policy)
