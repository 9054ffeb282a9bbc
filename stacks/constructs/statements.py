"""Policy statements that several roles share, and the reasons of their wildcards."""

from collections.abc import Iterable, Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import IConstruct

from slipway.planning.rights import Right


def write_logs(log_group: logs.LogGroup) -> iam.PolicyStatement:
    """Returns the right to write into an existing log group."""
    # The group's ARN ends in `:*`, which stands for its streams.
    return allow(
        "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log_group.log_group_arn
    )


def statements_of(rights: Iterable[Right]) -> list[iam.PolicyStatement]:
    """Returns the statements of rights that are data."""
    return [
        iam.PolicyStatement(
            sid=right.sid,
            actions=list(right.actions),
            resources=list(right.resources),
            conditions=right.conditions or None,
        )
        for right in rights
    ]


def allow(
    sid: str,
    actions: list[str],
    *resources: str,
    conditions: Mapping[str, Mapping[str, str]] | None = None,
) -> iam.PolicyStatement:
    """Returns a statement that allows actions on resources."""
    return iam.PolicyStatement(
        sid=sid, actions=actions, resources=list(resources), conditions=conditions
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
