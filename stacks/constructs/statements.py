"""Policy statements that several roles share, and the reasons of their wildcards."""

from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import IConstruct


def write_logs(log_group: logs.LogGroup) -> iam.PolicyStatement:
    """Returns the right to write into an existing log group."""
    # The group's ARN ends in `:*`, which stands for its streams.
    return allow(
        "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log_group.log_group_arn
    )


def write_logs_of_machines(log_group_arn: str) -> iam.PolicyStatement:
    """Returns SageMaker's right to write into a log group.

    Args:
        log_group_arn: ends in `:*`, which covers the group's streams, and the group itself for
            DescribeLogStreams.
    """
    return allow(
        "WriteLogs",
        ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
        log_group_arn,
    )


def read_objects(noun: str, bucket_arn: str, prefix: str) -> list[iam.PolicyStatement]:
    """Returns the rights to read and list the objects below a prefix.

    Args:
        noun: ends the statements' names.
        bucket_arn: of the bucket.
        prefix: of the objects.
    """
    return [
        allow(f"Read{noun}", ["s3:GetObject"], f"{bucket_arn}/{prefix}*"),
        allow(
            f"List{noun}",
            ["s3:ListBucket"],
            bucket_arn,
            conditions={"StringLike": {"s3:prefix": f"{prefix}*"}},
        ),
    ]


def pull_images(sid: str, *repository_arns: str) -> list[iam.PolicyStatement]:
    """Returns the rights to log in to ECR and to pull the images of repositories.

    Args:
        sid: name of the second statement.
        repository_arns: of the repositories.
    """
    actions = [
        "ecr:BatchCheckLayerAvailability",
        "ecr:BatchGetImage",
        "ecr:GetDownloadUrlForLayer",
    ]
    return [
        allow(sid, actions, *repository_arns),
        # ECR's log-in token belongs to the account: the API knows no narrower resource.
        allow("LogInToRegistry", ["ecr:GetAuthorizationToken"], "*"),
    ]


def allow(
    sid: str,
    actions: list[str],
    *resources: str,
    conditions: Mapping[str, Mapping[str, str]] | None = None,
) -> iam.PolicyStatement:
    """Returns a statement that allows actions on resources.

    Args:
        sid: its name.
        actions: of the services' APIs.
        resources: their ARNs.
        conditions: by operator and key.
    """
    return iam.PolicyStatement(
        sid=sid, actions=actions, resources=list(resources), conditions=conditions
    )


def acknowledge_wildcards(role: IConstruct, reasons: Mapping[str, str]) -> None:
    """Gives cdk-nag the reason of each wildcard; any further wildcard would be a finding.

    Args:
        role: the role with the statements.
        reasons: by the resource with the wildcard.
    """
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
