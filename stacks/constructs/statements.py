"""Policy statements that several roles share."""

from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs


def write_logs(log_group: logs.LogGroup) -> iam.PolicyStatement:
    """Returns the right to write into an existing log group."""
    # The group's ARN ends in `:*`, which stands for its streams.
    return allow(
        "WriteLogs", ["logs:CreateLogStream", "logs:PutLogEvents"], log_group.log_group_arn
    )


def allow(sid: str, actions: list[str], *resources: str) -> iam.PolicyStatement:
    """Returns a statement that allows actions on resources."""
    return iam.PolicyStatement(sid=sid, actions=actions, resources=list(resources))
