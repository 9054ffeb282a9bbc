"""Preflight compares an endpoint's network with the account's EC2."""

import pytest

from slipway.access import Access
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.network import compare_network
from slipway.planning.vpc import VpcPlan
from tests.support.networks import Network, make_network
from tests.support.plans import plan_for
from tests.support.projects import model_config


@pytest.fixture
def network(access: Access) -> Network:
    return make_network(access.client("ec2"))


def compared(
    access: Access, subnets: tuple[str, ...], groups: tuple[str, ...], made: str | None = None
) -> list[tuple[str, str]]:
    config = model_config()
    network = VpcPlan(subnets, groups)
    _, problems = parted(compare_network(plan_for(config), network, access, made))
    return [(each.message, each.remedy) for each in problems]


def test_what_is_missing_is_named_at_once(access: Access) -> None:
    remedy = "Correct the id in `endpoint.vpc` or `network`."
    assert compared(access, ("subnet-0a",), ("sg-0a", "sg-0b")) == [
        (f"{missing} is not in 123456789012/us-east-1", remedy)
        for missing in ("subnet-0a", "sg-0a", "sg-0b")
    ]


def test_groups_are_in_the_subnets_vpc(access: Access, network: Network) -> None:
    other = make_network(network.ec2)
    ids = sorted([network.vpc_id, other.vpc_id])
    assert compared(access, network.subnet_ids, (other.group("other"),)) == [
        (
            f"the subnets and security groups belong to several VPCs: {', '.join(ids)}",
            "Name subnets and security groups of one VPC.",
        )
    ]


@pytest.mark.parametrize("named", [True, False])
def test_a_network_has_a_way_to_s3(access: Access, network: Network, *, named: bool) -> None:
    group = network.closed_group("closed")
    groups, made = ((group,), None) if named else ((), group)
    no_route = [
        (
            f"{subnet} has no route to S3, so the model data cannot come",
            "Add a gateway endpoint for S3 to its route table, for example with `s3` in the "
            "environment's `network.vpc_endpoints`, or a default route to a NAT gateway.",
        )
        for subnet in network.subnet_ids
    ]
    no_rule = (
        f"no rule of {group} lets HTTPS out, so the model data cannot come from S3",
        "Add an outbound rule for TCP port 443 to one of the security groups.",
    )
    assert compared(access, network.subnet_ids, groups, made) == [no_rule, *no_route]
    network.open(group, IpRanges=[{"CidrIp": "0.0.0.0/0"}])
    assert compared(access, network.subnet_ids, groups, made) == no_route
    network.connect_s3()
    assert compared(access, network.subnet_ids, groups, made) == []


def test_an_internet_gateway_is_no_way(access: Access, network: Network) -> None:
    group = network.group("open")
    gateway = network.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    network.ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=network.vpc_id)
    everywhere = {"RouteTableId": network.route_table_id, "DestinationCidrBlock": "0.0.0.0/0"}
    network.ec2.create_route(**everywhere, GatewayId=gateway)
    assert len(compared(access, network.subnet_ids, (group,))) == 2
    nat = network.ec2.create_nat_gateway(
        SubnetId=network.subnet_ids[0], ConnectivityType="private"
    )["NatGateway"]["NatGatewayId"]
    network.ec2.replace_route(**everywhere, NatGatewayId=nat)
    assert compared(access, network.subnet_ids, (group,)) == []
