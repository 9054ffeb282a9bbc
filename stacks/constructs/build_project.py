"""A project of CodeBuild, with its log group and its role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.config.sections.image_builds import BuildVpc
from slipway.planning.statements import Statement
from slipway.stacks.constructs.handler_function import add_log_group
from slipway.stacks.constructs.statements import acknowledge_wildcards, document_of, write_logs

# It has Python 3.12, Docker 28 and buildx.
BUILD_IMAGE = "aws/codebuild/amazonlinux-x86_64-standard:5.0"
# Why the role has a wildcard for network interfaces.
INTERFACES_REASON = (
    "CodeBuild makes an interface for each build; conditions name service and subnets."
)


@dataclass(frozen=True)
class BuildRole:
    """The role of a project's builds, with rights in addition to writing the log."""

    assumed_by: iam.ServicePrincipal
    description: str
    policy_name: str
    statements: Sequence[Statement]
    reasons: Mapping[str, str]


def add_build_project(
    scope: Construct,
    *,
    description: str,
    role: BuildRole,
    source: str,
    build_specification: str,
    environment: codebuild.CfnProject.EnvironmentProperty,
    vpc: BuildVpc | None,
    timeout_minutes: int,
    queued_timeout_minutes: int,
    log_key_arn: str | None,
    name: str | None = None,
) -> codebuild.CfnProject:
    log_group = add_log_group(scope, "BuildLog", key_arn=log_key_arn)
    build_role = iam.Role(
        scope,
        "BuildRole",
        assumed_by=role.assumed_by,
        description=role.description,
        # Inline, so that the role never exists without its rights.
        inline_policies={role.policy_name: document_of([*role.statements, write_logs(log_group)])},
    )
    acknowledge_wildcards(build_role, role.reasons)
    project = codebuild.CfnProject(
        scope,
        "Project",
        name=name,
        description=description,
        service_role=build_role.role_arn,
        encryption_key="alias/aws/s3",
        artifacts=codebuild.CfnProject.ArtifactsProperty(type="NO_ARTIFACTS"),
        source=codebuild.CfnProject.SourceProperty(
            type="S3", location=source, build_spec=build_specification
        ),
        environment=environment,
        vpc_config=None if vpc is None else _vpc_config(vpc),
        logs_config=codebuild.CfnProject.LogsConfigProperty(
            cloud_watch_logs=codebuild.CfnProject.CloudWatchLogsConfigProperty(
                status="ENABLED", group_name=log_group.log_group_name
            )
        ),
        timeout_in_minutes=timeout_minutes,
        queued_timeout_in_minutes=queued_timeout_minutes,
    )
    cdk.Validations.of(project).acknowledge(
        cdk.Acknowledgment(
            id="AwsSolutions::AwsSolutions-CB4",
            reason="A build leaves no artifact and no cache behind that a key would encrypt.",
        )
    )
    return project


def plain_variables(
    variables: Mapping[str, str | None],
) -> list[codebuild.CfnProject.EnvironmentVariableProperty]:
    """Returns variables that are no secrets, without those that have no value."""
    return [
        codebuild.CfnProject.EnvironmentVariableProperty(name=name, value=value, type="PLAINTEXT")
        for name, value in variables.items()
        if value is not None
    ]


def _vpc_config(vpc: BuildVpc) -> codebuild.CfnProject.VpcConfigProperty:
    return codebuild.CfnProject.VpcConfigProperty(
        vpc_id=vpc.vpc_id,
        subnets=list(vpc.subnet_ids),
        security_group_ids=list(vpc.security_group_ids),
    )
