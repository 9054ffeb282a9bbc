"""Preflight compares a plan with the account's quotas of instances, and with its networks."""

import dataclasses
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.operations.preflight.findings import parted
from slipway.operations.preflight.network import compare_network
from slipway.operations.preflight.quotas import compare_quotas
from slipway.planning.plan import DeploymentPlan
from slipway.planning.vpc import VpcPlan
from tests.support.networks import Network, make_network
from tests.support.plans import plan_for
from tests.support.projects import model_config

FIRST, SECOND = "ml.g4dn.xlarge", "ml.g4dn.2xlarge"


def planned(**endpoint: Any) -> DeploymentPlan:
    config = model_config(endpoint=endpoint)
    return plan_for(config)


def code_of(client: Any, instance_type: str) -> str:
    quotas = client.list_aws_default_service_quotas(ServiceCode="sagemaker")["Quotas"]
    (code,) = (
        quota["QuotaCode"]
        for quota in quotas
        if quota["QuotaName"] == f"{instance_type} for endpoint usage"
    )
    return str(code)


def allow(access: Access, instance_type: str, count: int) -> None:
    client = access.client("service-quotas")
    client.request_service_quota_increase(
        ServiceCode="sagemaker", QuotaCode=code_of(client, instance_type), DesiredValue=count
    )


def test_a_first_deployment_needs_one_fleet(access: Access) -> None:
    assert parted(compare_quotas(planned(), access)) == (
        [f"quota '{FIRST} for endpoint usage' of 1000 for 2"],
        [],
    )
    allow(access, FIRST, 1)
    found, (problem,) = parted(compare_quotas(planned(), access))
    assert found == []
    assert problem.message == (
        f"the quota '{FIRST} for endpoint usage' is 1 in us-east-1, and the deployment needs 2"
    )
    assert problem.remedy.endswith("--desired-value 2 --region us-east-1`, or choose another type.")


def test_variants_of_one_type_add_up(access: Access) -> None:
    allow(access, FIRST, 3)
    variants = [{"name": name, "weight": 1} for name in ("a", "b")]
    _, (problem,) = parted(compare_quotas(planned(variants=variants), access))
    assert problem.message.endswith("is 3 in us-east-1, and the deployment needs 4")


def test_a_shadow_variant_counts(access: Access) -> None:
    allow(access, FIRST, 2)
    shadow = {"sampling_percent": 50, "instance_count": 1}
    _, (problem,) = parted(compare_quotas(planned(shadow=shadow), access))
    assert problem.message.endswith("is 2 in us-east-1, and the deployment needs 3")
    elsewhere = planned(shadow={**shadow, "instances": [SECOND]})
    assert parted(compare_quotas(elsewhere, access)) == (
        [
            f"quota '{FIRST} for endpoint usage' of 2 for 2",
            f"quota '{SECOND} for endpoint usage' of 1000 for 1",
        ],
        [],
    )


def test_a_pool_needs_room_in_one_of_its_types(access: Access) -> None:
    pool = planned(instances=[FIRST, SECOND])
    allow(access, FIRST, 0)
    assert parted(compare_quotas(pool, access)) == (
        [f"quota '{SECOND} for endpoint usage' of 1000 for 2"],
        [],
    )
    allow(access, SECOND, 1)
    _, problems = parted(compare_quotas(pool, access))
    assert [problem.message.split("'")[1] for problem in problems] == [
        f"{FIRST} for endpoint usage",
        f"{SECOND} for endpoint usage",
    ]


def test_a_type_that_service_quotas_does_not_list_is_named(access: Access) -> None:
    plan = planned()
    (variant,) = plan.variants
    unlisted = dataclasses.replace(variant, instance_types=("ml.new.xlarge",))
    assert parted(compare_quotas(dataclasses.replace(plan, variants=(unlisted,)), access)) == (
        ["quota 'ml.new.xlarge for endpoint usage': Service Quotas does not list it"],
        [],
    )


def test_quotas_are_of_a_region_and_of_sagemaker(access: Access) -> None:
    client = access.client("service-quotas")
    allow(access, FIRST, 5)
    named = {"ServiceCode": "sagemaker", "QuotaCode": code_of(client, FIRST)}
    assert client.get_service_quota(**named)["Quota"]["Value"] == 5
    (applied,) = client.list_service_quotas(ServiceCode="sagemaker")["Quotas"]
    assert applied["QuotaName"] == f"{FIRST} for endpoint usage"
    with pytest.raises(ClientError, match="the quotas of sagemaker for instances behind endpoints"):
        client.list_service_quotas(ServiceCode="ec2")
    with pytest.raises(ClientError, match="the specified quota does not exist"):
        client.get_service_quota(ServiceCode="sagemaker", QuotaCode="L-00000000")


# Networks


@pytest.fixture
def network(access: Access) -> Network:
    return make_network(access.client("ec2"))


def compared(
    access: Access, subnets: tuple[str, ...], groups: tuple[str, ...], made: str | None = None
) -> list[tuple[str, str]]:
    network = VpcPlan(subnets, groups)
    _, problems = parted(compare_network(planned(), network, access, made))
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
