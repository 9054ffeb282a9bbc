"""What SageMaker does with EC2, as the execution role, for an endpoint in a VPC."""

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from constructs import Construct

from slipway.planning.plan import DeploymentPlan
from stacks.constructs.mode_rights import ModeRights
from stacks.constructs.statements import allow

# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, "CreateModel API: Execution
# Role Permissions", read 2026-11-24. Its policy has no resources; they are narrowed as far as EC2
# has resources for these actions:
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html
_DESCRIBE = [
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
]
_CHANGE = [
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
]


def vpc_rights(
    scope: Construct,
    *,
    plan: DeploymentPlan,
    role: iam.Role,
    subnet_ids: Sequence[str],
    security_group_ids: Sequence[str],
) -> ModeRights:
    """Returns the rights to attach instances to exactly these subnets and security groups.

    Args:
        scope: the endpoint's stack.
        plan: account and region.
        role: the execution role.
        subnet_ids: of the endpoint.
        security_group_ids: of the endpoint.
    """
    prefix = f"arn:{cdk.Stack.of(scope).partition}:ec2:{plan.region}:{plan.account}"
    interfaces = f"{prefix}:network-interface/*"
    return ModeRights(
        scope,
        "Vpc",
        role=role,
        statements=[
            allow("DescribeNetwork", _DESCRIBE, "*"),
            allow(
                "CreateNetworkInterfaces",
                ["ec2:CreateNetworkInterface"],
                interfaces,
                *(f"{prefix}:subnet/{subnet}" for subnet in subnet_ids),
                *(f"{prefix}:security-group/{group}" for group in security_group_ids),
            ),
            allow("ChangeNetworkInterfaces", _CHANGE, interfaces),
        ],
        reasons={
            "*": "EC2's calls that describe have no resources.",
            interfaces: "EC2 chooses the ids of network interfaces.",
        },
    )
