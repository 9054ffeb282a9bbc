"""A container's place in a VPC: a network interface in the account's EC2, and its way to S3.

moto's EC2 has the subnets, security groups, routes and interfaces. No packet goes through them: the
process runs on this machine. What follows from them in AWS is decided here by looking at them.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from embedded_aws.api import ApiError
from embedded_aws.hosting.permissions import may
from embedded_aws.hosting.records import VALIDATION
from embedded_aws.hosting.role_access import denial
from embedded_aws.identity import ACCOUNT_ID

# https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-roles.html, "CreateModel API: Execution
# Role Permissions", read 2026-11-24. AWS uses the rights to delete when the endpoint ends; here a
# role without them is refused at the start.
_DESCRIBE = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)
_CREATE = "ec2:CreateNetworkInterface"
_CHANGE = (
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
)
# EC2's message of UnauthorizedOperation; how SageMaker frames it is not documented.
_UNAUTHORIZED = "You are not authorized to perform this operation. "
_EVERYWHERE = "0.0.0.0/0"
_HTTPS = 443
# A default route to one of these leads out. An internet gateway does not: the interfaces of
# SageMaker have no public address.
_WAYS_OUT = ("NatGatewayId", "TransitGatewayId", "NetworkInterfaceId", "InstanceId")


class VpcError(Exception):
    """An instance cannot be attached, or reaches no S3; the message is AWS's."""


@dataclass(frozen=True)
class VpcConfig:
    """The VpcConfig of a model.

    Attributes:
        subnets: ids.
        groups: ids of security groups.
    """

    subnets: tuple[str, ...]
    groups: tuple[str, ...]

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> "VpcConfig | None":
        """Returns the network of a CreateModel request; None without one."""
        config = model.get("VpcConfig")
        if config is None:
            return None
        return cls(tuple(config["Subnets"]), tuple(config["SecurityGroupIds"]))

    def check(self, ec2: Any) -> None:
        """Checks that the subnets and groups exist, in one VPC.

        Raises:
            ApiError: EC2's words, where it has some.
        """
        try:
            subnets = ec2.describe_subnets(SubnetIds=list(self.subnets))["Subnets"]
        except ClientError as error:
            raise ApiError(VALIDATION, error.response["Error"]["Message"]) from error
        groups = ec2.describe_security_groups(
            Filters=[{"Name": "group-id", "Values": list(self.groups)}]
        )["SecurityGroups"]
        for missing in sorted(set(self.groups) - {group["GroupId"] for group in groups}):
            raise ApiError(VALIDATION, f"The security group '{missing}' does not exist")
        vpc_ids = {subnet["VpcId"] for subnet in subnets}
        if len(vpc_ids) > 1:
            raise ApiError(VALIDATION, f"The subnets are in several VPCs: {sorted(vpc_ids)}.")
        for group in groups:
            if group["VpcId"] not in vpc_ids:
                raise ApiError(
                    VALIDATION,
                    f"Security group {group['GroupId']} and subnet {self.subnets[0]} belong to "
                    "different networks.",
                )


class Attachment:
    """The network interface of one container.

    Args:
        ec2: EC2's client.
        config: the model's network.
        role: ARN of the execution role; None for a model without one, which is allowed everything.
    """

    def __init__(self, ec2: Any, config: VpcConfig, role: str | None) -> None:
        self._ec2 = ec2
        self._config = config
        self._role = role
        self._interface_id: str | None = None

    def attach(self, description: str) -> None:
        """Makes the interface, in the first subnet.

        Raises:
            VpcError: the role may not do what SageMaker does in its name, or EC2 refuses.
        """
        for action, resource in self._needed():
            if self._role is not None and not may(self._role, action, resource):
                raise VpcError(_UNAUTHORIZED + denial(self._role, action, resource))
        try:
            made = self._ec2.create_network_interface(
                SubnetId=self._config.subnets[0],
                Groups=list(self._config.groups),
                Description=description,
            )
        except ClientError as error:
            raise VpcError(error.response["Error"]["Message"]) from error
        self._interface_id = made["NetworkInterface"]["NetworkInterfaceId"]

    def require_s3(self, uri: str) -> None:
        """Checks that every subnet has a route to S3, and that the groups let HTTPS out.

        Raises:
            VpcError: in AWS's words, as quoted at
                https://github.com/aws-solutions-library-samples/guidance-for-text-generation-using-embeddings-from-enterprise-data-on-aws/issues/3
                (read 2026-11-24).
        """
        rules = list(self._outbound())
        if all(self._reaches_s3(subnet, rules) for subnet in self._config.subnets):
            return
        raise VpcError(
            f'Failed to download model data from URL "{uri}". Please ensure that an S3 VPC '
            "endpoint exists in route table or NAT gateway for the VPC mode and the URL is "
            "reachable from within the subnets provided."
        )

    def detach(self) -> None:
        """Deletes the interface; AWS takes minutes for it."""
        if self._interface_id is not None:
            # Somebody may have deleted it meanwhile.
            with contextlib.suppress(ClientError):
                self._ec2.delete_network_interface(NetworkInterfaceId=self._interface_id)
            self._interface_id = None

    def _needed(self) -> Iterator[tuple[str, str]]:
        prefix = f"arn:aws:ec2:{self._ec2.meta.region_name}:{ACCOUNT_ID}"
        interface = f"{prefix}:network-interface/eni-0"
        for action in _DESCRIBE:
            yield action, "*"
        yield _CREATE, interface
        for subnet in self._config.subnets:
            yield _CREATE, f"{prefix}:subnet/{subnet}"
        for group in self._config.groups:
            yield _CREATE, f"{prefix}:security-group/{group}"
        for action in _CHANGE:
            yield action, interface

    def _outbound(self) -> Iterator[set[str]]:
        """Yields the destinations of each rule that lets HTTPS out: ranges and prefix lists."""
        groups = self._ec2.describe_security_groups(GroupIds=list(self._config.groups))
        for group in groups["SecurityGroups"]:
            for rule in group["IpPermissionsEgress"]:
                protocol = rule["IpProtocol"]
                is_https = protocol == "tcp" and rule["FromPort"] <= _HTTPS <= rule["ToPort"]
                if protocol == "-1" or is_https:
                    ranges = {each["CidrIp"] for each in rule["IpRanges"]}
                    yield ranges | {each["PrefixListId"] for each in rule["PrefixListIds"]}

    def _reaches_s3(self, subnet: str, rules: list[set[str]]) -> bool:
        endpoints = {
            each["VpcEndpointId"]
            for each in self._ec2.describe_vpc_endpoints()["VpcEndpoints"]
            if each["ServiceName"].endswith(".s3")
        }
        for route in self._routes(subnet):
            if route.get("GatewayId") in endpoints:
                allowed = {_EVERYWHERE, route.get("DestinationPrefixListId")}
            elif route.get("DestinationCidrBlock") == _EVERYWHERE and any(
                route.get(way) for way in _WAYS_OUT
            ):
                allowed = {_EVERYWHERE}
            else:
                continue
            if any(allowed & destinations for destinations in rules):
                return True
        return False

    def _routes(self, subnet: str) -> list[dict[str, Any]]:
        """Returns the routes of a subnet's own table, or of its VPC's main one."""
        found = self._ec2.describe_route_tables(
            Filters=[{"Name": "association.subnet-id", "Values": [subnet]}]
        )["RouteTables"]
        if not found:
            vpc_id = self._ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
            found = self._ec2.describe_route_tables(
                Filters=[
                    {"Name": "vpc-id", "Values": [vpc_id]},
                    {"Name": "association.main", "Values": ["true"]},
                ]
            )["RouteTables"]
        return [route for table in found for route in table["Routes"]]
