"""Policies of roles in the CDK's form, the reasons of their wildcards, and the boundary."""

from collections.abc import Iterable, Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct

from slipway.planning.statements import Statement, allow


def write_logs(log_group: logs.LogGroup) -> Statement:
    # The group's ARN ends in `:*`, which stands for its streams.
    return allow(
        "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log_group.log_group_arn
    )


def trusted(
    scope: IConstruct, service: str, environment_account: str, source: str
) -> iam.ServicePrincipal:
    """Returns a service as a role's principal, for one account and some of its resources.

    AWS recommends both conditions:
    https://docs.aws.amazon.com/IAM/latest/UserGuide/confused-deputy.html `source` is the end of the
    ARN that the service names, after the account.
    """
    stack = cdk.Stack.of(scope)
    place = f"{service}:{stack.region}:{environment_account}"
    return iam.ServicePrincipal(
        f"{service}.amazonaws.com",
        conditions={
            "StringEquals": {"aws:SourceAccount": environment_account},
            "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:{place}:{source}"},
        },
    )


def document_of(statements: Iterable[Statement]) -> iam.PolicyDocument:
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                sid=each.sid,
                actions=list(each.actions),
                resources=list(each.resources),
                conditions=each.conditions or None,
            )
            for each in statements
        ]
    )


def acknowledge_wildcards(role: IConstruct, reasons: Mapping[str, str]) -> None:
    """Gives cdk-nag the reason of each wildcard; any further wildcard would be a finding."""
    partition = cdk.Stack.of(role).partition
    for resource, reason in reasons.items():
        # If the partition is a token, cdk-nag shows it in this form.
        shown = resource
        if cdk.Token.is_unresolved(partition):
            shown = resource.replace(partition, "<AWS::Partition>")
        cdk.Validations.of(role).acknowledge(
            cdk.Acknowledgment(
                id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{shown}]", reason=reason
            )
        )


def limit_roles(scope: Construct, boundary_arn: str | None) -> None:
    """Gives every role of a stack or a construct a permissions boundary, if there is one."""
    if boundary_arn is not None:
        policy = iam.ManagedPolicy.from_managed_policy_arn(scope, "Boundary", boundary_arn)
        iam.PermissionsBoundary.of(scope).apply(policy)
