"""Networks: of all endpoints of an environment, and of one endpoint."""

from typing import Literal

from pydantic import Field

from slipway.config.sections.base import RouteTableId, Section, SecurityGroupId, SubnetId, VpcId

VpcEndpoint = Literal["s3", "ecr", "logs", "monitoring", "sts"]


class Network(Section):
    """A VPC that exists. The foundation adds a security group and VPC endpoints where asked."""

    vpc_id: VpcId = Field(description="The VPC of the subnets.", examples=["vpc-0a1b2c3d"])
    subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=1,
        max_length=16,
        strict=False,
        description="Private subnets with a way to S3: a VPC endpoint or a NAT gateway. "
        "Use two zones, so that endpoints survive the loss of one.",
        examples=[["subnet-0a1b2c3d", "subnet-4e5f6a7b"]],
    )
    security_group_ids: tuple[SecurityGroupId, ...] = Field(
        (),
        max_length=5,
        strict=False,
        description="Security groups that let HTTPS out. Without any, the foundation makes "
        "one that lets nothing else out, and nothing in.",
        examples=[["sg-0a1b2c3d"]],
    )
    vpc_endpoints: tuple[VpcEndpoint, ...] = Field(
        (),
        max_length=5,
        strict=False,
        description="VPC endpoints that the foundation makes. SageMaker needs `s3` for the "
        "model data. `ecr`, `logs`, `monitoring` and `sts` serve calls of the container "
        "itself, and each costs money per hour and zone.",
        examples=[["s3", "sts"]],
    )
    route_table_ids: tuple[RouteTableId, ...] = Field(
        (),
        strict=False,
        description="Route tables of the subnets. Only with `s3` in `vpc_endpoints`, which "
        "adds a route to each.",
        examples=[["rtb-0a1b2c3d"]],
    )


class Vpc(Section):
    """The network that the containers are attached to, and that brings the model data."""

    subnet_ids: tuple[SubnetId, ...] = Field(
        min_length=1,
        max_length=16,
        strict=False,
        description="Private subnets with a way to S3. Use two zones, so that the endpoint "
        "survives the loss of one.",
        examples=[["subnet-0a1b2c3d", "subnet-4e5f6a7b"]],
    )
    security_group_ids: tuple[SecurityGroupId, ...] = Field(
        (),
        max_length=5,
        strict=False,
        description="Security groups of the subnets' VPC. Without any: the groups of the "
        "environment's `network`.",
        examples=[["sg-0a1b2c3d"]],
    )
