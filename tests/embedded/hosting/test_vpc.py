"""Models in a VPC: what EC2 has is checked, and the role needs each right that AWS documents."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.networks import Network, make_network
from tests.support.roles import MAY_USE_OBJECTS, make_role

RIGHTS = (
    "ec2:CreateNetworkInterface",
    "ec2:CreateNetworkInterfacePermission",
    "ec2:DeleteNetworkInterface",
    "ec2:DeleteNetworkInterfacePermission",
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcs",
)
URI = "s3://artifacts/model/files/"
UNREACHABLE = (
    f'Failed to download model data from URL "{URI}". Please ensure that an S3 VPC endpoint exists '
    "in route table or NAT gateway for the VPC mode and the URL is reachable from within the "
    "subnets provided."
)


@pytest.fixture(scope="module")
def network(account: Any) -> Network:
    return make_network(account.clients.client("ec2", "us-east-1"))


@pytest.fixture(scope="module")
def connected(account: Any) -> Network:
    """A network with a way to S3."""
    made = make_network(account.clients.client("ec2", "us-east-1"))
    made.connect_s3()
    return made


@pytest.fixture
def role(account: Any) -> Iterator[str]:
    iam = account.clients.client("iam", "us-east-1")
    yield make_role(iam, "attached")
    iam.delete_role_policy(RoleName="attached", PolicyName="p")
    iam.delete_role(RoleName="attached")


def allow(account: Any, *actions: str) -> None:
    statement = {"Effect": "Allow", "Action": list(actions), "Resource": "*"}
    document = MAY_USE_OBJECTS | {"Statement": [*MAY_USE_OBJECTS["Statement"], statement]}
    account.clients.client("iam", "us-east-1").put_role_policy(
        RoleName="attached", PolicyName="p", PolicyDocument=json.dumps(document)
    )


def model(account: Any, role: str, subnets: Any, groups: list[str]) -> str:
    name: str = account.name()
    account.sagemaker.create_model(
        ModelName=name,
        ExecutionRoleArn=role,
        PrimaryContainer={"Image": account.image, **account.source()},
        VpcConfig={"Subnets": list(subnets), "SecurityGroupIds": groups},
    )
    return name


def outcome(account: Any, model_name: str) -> tuple[str, str]:
    """Starts an endpoint; returns its name, and the reason if it failed."""
    name = account.begin(account.config(account.variant(model_name)))
    return name, account.settled(name).get("FailureReason", "")


def test_it_has_a_network_interface_while_it_runs(
    account: Any, connected: Network, role: str
) -> None:
    allow(account, *RIGHTS)
    group = connected.group("runs")
    name, reason = outcome(account, model(account, role, connected.subnet_ids, [group]))
    assert reason == ""
    (interface,) = connected.interfaces()
    assert interface["SubnetId"] == connected.subnet_ids[0]
    assert [each["GroupId"] for each in interface["Groups"]] == [group]
    assert interface["Description"] == f"/aws/sagemaker/Endpoints/{name} AllTraffic"
    assert account.invoke(name, "hello") == "hello"
    with pytest.raises(ClientError, match=f"resource {group} has a dependent object"):
        connected.ec2.delete_security_group(GroupId=group)
    account.delete(name)
    assert connected.interfaces() == []
    connected.ec2.delete_security_group(GroupId=group)


@pytest.mark.parametrize("missing", RIGHTS)
def test_the_role_needs_each_right(
    account: Any, connected: Network, role: str, missing: str
) -> None:
    allow(account, *(right for right in RIGHTS if right != missing))
    group = connected.group(f"without {missing}")
    name, reason = outcome(account, model(account, role, connected.subnet_ids, [group]))
    assert reason.startswith(
        "You are not authorized to perform this operation. User: "
        "arn:aws:sts::123456789012:assumed-role/attached/SageMaker is not authorized to perform: "
        f"{missing}"
    )
    assert reason.endswith(f"because no identity-based policy allows the {missing} action")
    account.delete(name)
    assert connected.interfaces() == []


def test_without_a_way_to_s3_the_model_data_does_not_come(
    account: Any, network: Network, connected: Network, role: str
) -> None:
    allow(account, *RIGHTS)
    unrouted = model(account, role, network.subnet_ids, [network.group("unrouted")])
    name, reason = outcome(account, unrouted)
    assert reason == UNREACHABLE
    account.delete(name)
    group = connected.closed_group("closed")
    closed = model(account, role, connected.subnet_ids, [group])
    name, reason = outcome(account, closed)
    assert reason == UNREACHABLE
    account.delete(name)
    # To the addresses of S3 alone.
    connected.open(group, PrefixListIds=[{"PrefixListId": connected.s3_prefix_list()}])
    name, reason = outcome(account, closed)
    assert reason == ""
    account.delete(name)


def test_a_nat_gateway_is_a_way_and_an_internet_gateway_is_none(account: Any, role: str) -> None:
    allow(account, *RIGHTS)
    network = make_network(account.clients.client("ec2", "us-east-1"))
    named = model(account, role, network.subnet_ids, [network.group("nat")])
    internet = network.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    network.ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=network.vpc_id)
    everywhere = {
        "RouteTableId": network.route_table_id,
        "DestinationCidrBlock": "0.0.0.0/0",
    }
    network.ec2.create_route(**everywhere, GatewayId=internet)
    name, reason = outcome(account, named)
    assert reason == UNREACHABLE
    account.delete(name)
    gateway = network.ec2.create_nat_gateway(
        SubnetId=network.subnet_ids[0], ConnectivityType="private"
    )["NatGateway"]["NatGatewayId"]
    network.ec2.replace_route(**everywhere, NatGatewayId=gateway)
    name, reason = outcome(account, named)
    assert reason == ""
    account.delete(name)


@pytest.mark.parametrize("kind", ["subnet", "group", "elsewhere", "several", "seventeen", "six"])
def test_a_model_names_what_ec2_has(
    account: Any, network: Network, connected: Network, role: str, kind: str
) -> None:
    subnets, group = network.subnet_ids, network.group(kind)
    other = connected.group(kind)
    cases = {
        "subnet": (("subnet-0a",), [group], "The subnet ID 'subnet-0a' does not exist"),
        "group": (subnets, ["sg-0a"], "The security group 'sg-0a' does not exist"),
        "elsewhere": (
            subnets,
            [other],
            f"Security group {other} and subnet {subnets[0]} belong to different networks.",
        ),
        "several": (
            (*subnets, *connected.subnet_ids),
            [group],
            f"The subnets are in several VPCs: {sorted([network.vpc_id, connected.vpc_id])}.",
        ),
        "seventeen": (["subnet-0a"] * 17, [group], "less than or equal to 16"),
        "six": (subnets, ["sg-0a"] * 6, "less than or equal to 5"),
    }
    subnets, groups, words = cases[kind]
    with pytest.raises(ClientError) as caught:
        model(account, role, subnets, groups)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert words in caught.value.response["Error"]["Message"]
