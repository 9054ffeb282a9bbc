"""A project of CodeBuild, with its log group and its role."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_codebuild as codebuild
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from slipway.config.sections.image_builds import BuildVpc
from slipway.planning.plan import ImagePlan
from slipway.planning.statements import Statement, allow
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


_ECR_REGISTRY = re.compile(r"(\d{12})\.dkr\.ecr\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?")


def build_statements(
    scope: Construct,
    image: ImagePlan,
    bases: Sequence[str],
    files: Sequence[assets.Asset],
    vpc: BuildVpc | None,
) -> list[Statement]:
    partition = cdk.Stack.of(scope).partition
    bucket_arn = files[0].bucket.bucket_arn
    statements = [
        allow(
            "ReadSources",
            ["s3:GetObject", "s3:GetObjectVersion"],
            *(f"{bucket_arn}/{file.s3_object_key}" for file in files),
        ),
        allow("FindSources", ["s3:GetBucketAcl", "s3:GetBucketLocation"], bucket_arn),
        allow("LogInToRegistries", ["ecr:GetAuthorizationToken"], "*"),
        allow(
            "PushImages",
            [
                "ecr:BatchCheckLayerAvailability",
                "ecr:BatchGetImage",
                "ecr:CompleteLayerUpload",
                "ecr:InitiateLayerUpload",
                "ecr:PutImage",
                "ecr:UploadLayerPart",
            ],
            _repository_arn(partition, image.account, image.region, image.repository),
        ),
    ]
    repositories = sorted({arn for base in bases if (arn := _base_repository_arn(partition, base))})
    if repositories:
        statements.append(
            allow(
                "PullBases",
                [
                    "ecr:BatchCheckLayerAvailability",
                    "ecr:BatchGetImage",
                    "ecr:GetDownloadUrlForLayer",
                ],
                *repositories,
            )
        )
    if vpc is not None:
        statements += network_statements(partition, image.region, image.account, vpc)
    return statements


def network_interfaces_arn(partition: str, region: str, account: str) -> str:
    """Returns the network interfaces that a build in a VPC may attach."""
    return f"arn:{partition}:ec2:{region}:{account}:network-interface/*"


def network_statements(partition: str, region: str, account: str, vpc: BuildVpc) -> list[Statement]:
    """Returns the rights that AWS requires for a build in a VPC.

    https://docs.aws.amazon.com/codebuild/latest/userguide/auth-and-access-control-iam-identity-based-access-control.html
    ("Allow CodeBuild access to AWS services required to create a VPC network interface"), read in
    aws-cdk-lib 2.275.0, which gives its projects the same.
    """
    subnets = [
        f"arn:{partition}:ec2:{region}:{account}:subnet/{subnet}" for subnet in vpc.subnet_ids
    ]
    attach = allow(
        "AttachNetworkInterfaces",
        ["ec2:CreateNetworkInterfacePermission"],
        network_interfaces_arn(partition, region, account),
        StringEquals={
            "ec2:AuthorizedService": "codebuild.amazonaws.com",
            "ec2:Subnet": subnets,
        },
    )
    manage = allow(
        "ManageNetworkInterfaces",
        [
            "ec2:CreateNetworkInterface",
            "ec2:DeleteNetworkInterface",
            "ec2:DescribeDhcpOptions",
            "ec2:DescribeNetworkInterfaces",
            "ec2:DescribeSecurityGroups",
            "ec2:DescribeSubnets",
            "ec2:DescribeVpcs",
        ],
        "*",
    )
    return [manage, attach]


def _base_repository_arn(partition: str, base_image: str) -> str | None:
    """Returns the ECR repository of a base image; None if the image is not in ECR."""
    registry, _, path = base_image.partition("/")
    match = _ECR_REGISTRY.fullmatch(registry)
    if match is None:
        return None
    repository = path.partition("@")[0].partition(":")[0]
    return _repository_arn(partition, match[1], match[2], repository)


def _repository_arn(partition: str, account: str, region: str, repository: str) -> str:
    return f"arn:{partition}:ecr:{region}:{account}:repository/{repository}"
