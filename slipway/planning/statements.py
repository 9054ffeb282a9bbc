"""Statements of IAM as data, from which stacks make policies, and which commands print."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TRAINING_JOBS = "/aws/sagemaker/TrainingJobs"
COPIES = "/aws/sagemaker/InferenceComponents"
"""The namespaces of the metrics of training jobs' machines, and of inference components' copies."""

_Conditions = Mapping[str, Mapping[str, str | list[str]]]


@dataclass(frozen=True)
class Statement:
    """A statement that allows actions on resources, whose ARNs may have tokens of the CDK."""

    sid: str
    actions: tuple[str, ...]
    resources: tuple[str, ...]
    conditions: _Conditions = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        statement: dict[str, Any] = {
            "Sid": self.sid,
            "Effect": "Allow",
            "Action": list(self.actions),
            "Resource": list(self.resources),
        }
        if self.conditions:
            statement["Condition"] = {name: dict(keys) for name, keys in self.conditions.items()}
        return statement


@dataclass(frozen=True)
class RolePolicy:
    """A policy of a role, with the reason for each wildcard in a resource."""

    name: str
    statements: tuple[Statement, ...]
    reasons: Mapping[str, str]


@dataclass(frozen=True)
class Key:
    """A key of KMS; conditions tell it from others where its ARN has a wildcard."""

    arn: str
    conditions: _Conditions = field(default_factory=dict)


def allow(sid: str, actions: Sequence[str], *resources: str, **conditions: Any) -> Statement:
    """Returns a statement; its conditions are keys and values, by operator."""
    return Statement(sid, tuple(actions), resources, conditions)


def policy_document(statements: Iterable[Statement]) -> dict[str, Any]:
    """Returns a policy as commands print it, and as IAM takes it."""
    return {"Version": "2012-10-17", "Statement": [each.as_json() for each in statements]}


def use_key(sid: str, actions: Sequence[str], key: Key) -> Statement:
    return allow(sid, actions, key.arn, **key.conditions)


def read_objects(noun: str, bucket_arn: str, prefix: str) -> list[Statement]:
    """Returns the rights to read and list the objects below a prefix; the noun ends their names."""
    return [
        allow(f"Read{noun}", ["s3:GetObject"], f"{bucket_arn}/{prefix}*"),
        allow(f"List{noun}", ["s3:ListBucket"], bucket_arn, StringLike={"s3:prefix": f"{prefix}*"}),
    ]


def pull_images(sid: str, *repository_arns: str) -> list[Statement]:
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


def write_logs_of_machines(*log_group_arns: str) -> Statement:
    """Returns SageMaker's right to write into log groups.

    Each ARN ends in `:*`, which covers the group's streams, and the group itself for
    DescribeLogStreams.
    """
    actions = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    return allow("WriteLogs", actions, *log_group_arns)


def publish_metrics(*namespaces: str) -> Statement:
    """Returns the right that lets SageMaker publish machine metrics in some namespaces.

    SageMaker publishes CPU, memory, disk and GPU use as the execution role. The role policies that
    AWS lists for CreateModel and CreateTrainingJob therefore contain `cloudwatch:PutMetricData` and
    `logs:DescribeLogStreams`. Without the first, these metrics never appear and nothing reports it.

    Sources, read 2026-11-22:
    https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html (CreateModel API and
    CreateTrainingJob API: Execution Role Permissions);
    https://github.com/aws-samples/host-yolov8-on-sagemaker-endpoint/pull/26 (instance metrics of
    endpoints are missing without it);
    https://docs.aws.amazon.com/sagemaker/latest/dg/monitoring-cloudwatch.html (the namespaces).
    """
    named = namespaces[0] if len(namespaces) == 1 else list(namespaces)
    # PutMetricData has no resources, only a condition on the namespace.
    return allow(
        "PublishMachineMetrics",
        ["cloudwatch:PutMetricData"],
        "*",
        StringEquals={"cloudwatch:namespace": named},
    )
