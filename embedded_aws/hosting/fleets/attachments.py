"""What an instance has in the account: an interface in a VPC, and a grant on its volume's key.

moto's EC2 has the subnets, security groups, routes and interfaces. No packet goes through them: the
process runs on this machine. What follows from them in AWS is decided here by looking at them. No
volume exists here either, so nothing is encrypted. What AWS needs of the key is checked: it exists,
it is enabled, and the execution role may make grants.
"""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from botocore.exceptions import ClientError
from moto.ec2.models import ec2_backends
from moto.iam.models import iam_backends

from slipway.embedded_aws.iam.permissions import may
from slipway.embedded_aws.iam.s3_access import denial
from slipway.embedded_aws.identity import ACCOUNT_ID

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
# Of https://docs.aws.amazon.com/kms/latest/developerguide/services-ebs.html, read 2026-11-24: the
# operations of the grants with which EC2 attaches an encrypted volume.
_OPERATIONS = ["Decrypt", "GenerateDataKeyWithoutPlaintext", "ReEncryptFrom", "ReEncryptTo"]
_SYMMETRIC = "SYMMETRIC_DEFAULT"


class AttachmentError(Exception):
    """An instance gets no interface, no S3 or no key; the message is AWS's where it has one."""


@contextlib.contextmanager
def network_interface(
    ec2: Any, config: Mapping[str, Any], role: str | None, description: str
) -> Iterator[None]:
    """Makes an interface in the first subnet, and deletes it at the end, if the role still may.

    A model without a role is allowed everything. Raises `AttachmentError` if the role may not do
    what SageMaker does in its name, or EC2 refuses.
    """
    for action, resource in _needed(ec2.meta.region_name, config):
        if role is not None and not may(role, action, resource):
            raise AttachmentError(_UNAUTHORIZED + denial(role, action, resource))
    try:
        made = ec2.create_network_interface(
            SubnetId=config["Subnets"][0],
            Groups=config["SecurityGroupIds"],
            Description=description,
        )
    except ClientError as error:
        raise AttachmentError(error.response["Error"]["Message"]) from error
    region, made_id = ec2.meta.region_name, made["NetworkInterface"]["NetworkInterfaceId"]
    arn = f"arn:aws:ec2:{region}:{ACCOUNT_ID}:network-interface/{made_id}"
    if role is not None:
        # moto has one requester for all. EC2 has the caller: a role's session begins with its id.
        role_id = iam_backends[ACCOUNT_ID]["aws"].get_role(role.rpartition("/")[2]).id
        ec2_backends[ACCOUNT_ID][region].enis[made_id].requester_id = f"{role_id}:SageMaker"
    try:
        yield
    finally:
        # Somebody may have deleted it meanwhile.
        with contextlib.suppress(ClientError):
            if role is None or may(role, "ec2:DeleteNetworkInterface", arn):
                ec2.delete_network_interface(NetworkInterfaceId=made_id)


def require_s3(ec2: Any, config: Mapping[str, Any], uri: str) -> None:
    """Checks that every subnet has a route to S3, and that the groups let HTTPS out.

    The `AttachmentError` has AWS's words, as quoted in issue 3 (read 2026-11-24) of
    https://github.com/aws-solutions-library-samples, repository
    guidance-for-text-generation-using-embeddings-from-enterprise-data-on-aws.
    """
    rules = list(_outbound(ec2, config["SecurityGroupIds"]))
    if not all(_reaches_s3(ec2, subnet, rules) for subnet in config["Subnets"]):
        raise AttachmentError(
            f'Failed to download model data from URL "{uri}". Please ensure that an S3 VPC '
            "endpoint exists in route table or NAT gateway for the VPC mode and the URL is "
            "reachable from within the subnets provided."
        )


@contextlib.contextmanager
def volume_grant(kms: Any, key_id: str, role: str | None) -> Iterator[None]:
    """Makes the grant on one variant's key, and revokes it at the end, if the role still may.

    `key_id` is an id, an ARN or an alias. A model without a role is allowed everything. Raises
    `AttachmentError` if the key does not exist or is of no use, or the role may not do this.
    """
    try:
        key = kms.describe_key(KeyId=key_id)["KeyMetadata"]
    except ClientError as error:
        raise AttachmentError(error.response["Error"]["Message"]) from error
    arn = key["Arn"]
    if role is not None and not may(role, "kms:CreateGrant", arn):
        raise AttachmentError(denial(role, "kms:CreateGrant", arn))
    if key["KeyState"] == "PendingDeletion":
        raise AttachmentError(f"{arn} is pending deletion.")
    if key["KeyState"] != "Enabled":
        raise AttachmentError(f"{arn} is disabled.")
    if key["KeySpec"] != _SYMMETRIC:
        raise AttachmentError(f"{arn} is no symmetric key, and volumes take no other.")
    principal = role or f"arn:aws:iam::{ACCOUNT_ID}:root"
    made = kms.create_grant(KeyId=arn, GranteePrincipal=principal, Operations=_OPERATIONS)
    try:
        yield
    finally:
        # Somebody may have revoked it meanwhile.
        with contextlib.suppress(ClientError):
            if role is None or may(role, "kms:CreateGrant", arn):
                kms.revoke_grant(KeyId=arn, GrantId=made["GrantId"])


def _needed(region: str, config: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    prefix = f"arn:aws:ec2:{region}:{ACCOUNT_ID}"
    interface = f"{prefix}:network-interface/eni-0"
    for action in _DESCRIBE:
        yield action, "*"
    yield _CREATE, interface
    for subnet in config["Subnets"]:
        yield _CREATE, f"{prefix}:subnet/{subnet}"
    for group in config["SecurityGroupIds"]:
        yield _CREATE, f"{prefix}:security-group/{group}"
    for action in _CHANGE:
        yield action, interface


def _outbound(ec2: Any, groups: list[str]) -> Iterator[set[str]]:
    """Yields the destinations of each rule that lets HTTPS out: ranges and prefix lists."""
    for group in ec2.describe_security_groups(GroupIds=groups)["SecurityGroups"]:
        for rule in group["IpPermissionsEgress"]:
            protocol = rule["IpProtocol"]
            is_https = protocol == "tcp" and rule["FromPort"] <= _HTTPS <= rule["ToPort"]
            if protocol == "-1" or is_https:
                ranges = {each["CidrIp"] for each in rule["IpRanges"]}
                yield ranges | {each["PrefixListId"] for each in rule["PrefixListIds"]}


def _reaches_s3(ec2: Any, subnet: str, rules: list[set[str]]) -> bool:
    endpoints = {
        each["VpcEndpointId"]
        for each in ec2.describe_vpc_endpoints()["VpcEndpoints"]
        if each["ServiceName"].endswith(".s3")
    }
    for route in _routes(ec2, subnet):
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


def _routes(ec2: Any, subnet: str) -> list[dict[str, Any]]:
    """Returns the routes of a subnet's own table, or of its VPC's main one."""
    found = ec2.describe_route_tables(
        Filters=[{"Name": "association.subnet-id", "Values": [subnet]}]
    )["RouteTables"]
    if not found:
        vpc_id = ec2.describe_subnets(SubnetIds=[subnet])["Subnets"][0]["VpcId"]
        found = ec2.describe_route_tables(
            Filters=[
                {"Name": "vpc-id", "Values": [vpc_id]},
                {"Name": "association.main", "Values": ["true"]},
            ]
        )["RouteTables"]
    return [route for table in found for route in table["Routes"]]
