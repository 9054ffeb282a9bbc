"""The rights of image builds in the account."""

import re
from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_s3_assets as assets
from constructs import Construct

from slipway.config.sections.image_builds import BuildVpc
from slipway.planning.plan import ImagePlan
from slipway.planning.statements import Statement, allow

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
