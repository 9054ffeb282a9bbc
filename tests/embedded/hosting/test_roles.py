"""Roles, keys and networks of models: each right that AWS documents is needed, and is enough."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.hosting.conftest import Account, Role, may, refused
from tests.support.networks import Network, make_network
from tests.support.roles import MAY_USE_OBJECTS
from tests.support.waiting import eventually

BUCKET = "arn:aws:s3:::artifacts"
READ = may("s3:GetObject", on=f"{BUCKET}/model/*")
LIST = may("s3:ListBucket", on=BUCKET, Condition={"StringLike": {"s3:prefix": "model/*"}})
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
def kms(account: Account) -> Any:
    return account.client("kms")


@pytest.fixture
def key(kms: Any) -> str:
    return kms.create_key()["KeyMetadata"]["Arn"]


@pytest.fixture(scope="module")
def network(account: Any) -> Network:
    return make_network(account.client("ec2"))


@pytest.fixture(scope="module")
def connected(account: Any) -> Network:
    """A network with a way to S3."""
    made = make_network(account.client("ec2"))
    made.connect_s3()
    return made


def allow(role: Role, *actions: str, on: str = "*") -> None:
    role.allow(*MAY_USE_OBJECTS["Statement"], may(*actions, on=on))


def test_a_role_that_may_list_and_read_its_prefix_serves_it(account, role):
    role.allow(READ, LIST)
    account.endpoint()


@pytest.mark.parametrize(
    "statements",
    [
        [READ],
        [LIST],
        [LIST, READ | {"Resource": f"{BUCKET}/other/*"}],
        [READ, LIST | {"Condition": {"StringLike": {"s3:prefix": "other/*"}}}],
    ],
)
def test_any_other_role_makes_no_model(account, role, statements):
    role.allow(*statements)
    assert refused(account.model) == (
        "Could not access model data at s3://artifacts/model/files/. Please ensure that the role "
        f'"{role.arn}" exists and that its trust relationship policy allows the action '
        '"sts:AssumeRole" for the service principal "sagemaker.amazonaws.com". Also ensure that '
        'the role has "s3:GetObject" permissions and that the object is located in us-east-1. If '
        "your Model uses multiple models or uncompressed models, please ensure that the role has "
        '"s3:ListBucket" permission.'
    )


def test_an_endpoint_fails_where_the_role_may_not_decrypt(account, kms, role):
    keys = [kms.create_key()["KeyMetadata"]["Arn"] for _ in range(2)]
    account.s3.put_object(
        Bucket="artifacts",
        Key="model/encrypted/config.json",
        Body=b"{}",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=keys[0],
    )
    model = account.model(**account.source("s3://artifacts/model/encrypted/"))
    role.allow(READ, LIST, may("kms:Decrypt", on=keys[1]))
    assert (
        f'{role.denied("kms:Decrypt")} on resource: "{keys[0]}" because no identity-based policy '
        "allows the kms:Decrypt action"
    ) in account.failure(account.variant(model))
    role.allow(READ, LIST, may("kms:Decrypt", on=keys))
    account.serve(account.variant(model))


def failure(account: Account, key: str) -> str:
    return account.failure(account.variant(account.model()), KmsKeyId=key)


def test_a_grant_goes_after_the_endpoint(account, kms, role, key):
    allow(role, "kms:CreateGrant", on=key)
    name = account.serve(account.variant(account.model()), KmsKeyId=key)
    (grant,) = kms.list_grants(KeyId=key)["Grants"]
    assert grant["GranteePrincipal"] == role.arn
    account.delete(name)
    eventually(lambda: kms.list_grants(KeyId=key)["Grants"] == [])


def test_the_role_needs_the_right_on_this_key(account, kms, role, key):
    allow(role, "kms:CreateGrant", on=kms.create_key()["KeyMetadata"]["Arn"])
    assert failure(account, key) == (
        f'{role.denied("kms:CreateGrant")} on resource: "{key}" because no identity-based policy '
        "allows the kms:CreateGrant action"
    )


def test_the_key_is_there_and_enabled(account, kms, role, key):
    allow(role, "kms:CreateGrant")
    key_id = key.rpartition("/")[2]
    kms.disable_key(KeyId=key_id)
    assert failure(account, key) == f"{key} is disabled."
    kms.schedule_key_deletion(KeyId=key_id)
    assert failure(account, key) == f"{key} is pending deletion."
    assert "does not exist" in failure(account, key.replace(key[-4:], "0000"))
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    assert failure(account, pair) == f"{pair} is no symmetric key, and volumes take no other."


def variant(account: Account, subnets: Any, groups: list[str]) -> dict[str, Any]:
    network = {"Subnets": list(subnets), "SecurityGroupIds": groups}
    return account.variant(account.model(network=network))


def test_its_network_interface_outlives_it_and_stays_if_its_role_was_deleted(
    account, connected, role
):
    allow(role, *RIGHTS)
    group = connected.group("runs")
    left = account.serve(variant(account, connected.subnet_ids, [group]))
    (interface,) = connected.interfaces()
    assert interface["SubnetId"] == connected.subnet_ids[0]
    assert [each["GroupId"] for each in interface["Groups"]] == [group]
    assert interface["Description"] == f"/aws/sagemaker/Endpoints/{left} AllTraffic"
    assert interface["RequesterId"] == f"{role.id}:SageMaker"
    assert account.invoke(left, "hello") == "hello"
    with pytest.raises(ClientError, match=f"resource {group} has a dependent object"):
        connected.ec2.delete_security_group(GroupId=group)
    kept = Role(account)
    allow(kept, *RIGHTS)
    account.role = kept.arn
    gone = account.serve(variant(account, connected.subnet_ids, [group]))
    role.delete()
    for name in (left, gone):
        account.delete(name)
    # The other role's endpoint was deleted later, and its interface goes.
    eventually(lambda: len(connected.interfaces()) == 1)
    assert connected.interfaces() == [interface]
    connected.ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
    connected.ec2.delete_security_group(GroupId=group)


@pytest.mark.parametrize("missing", RIGHTS)
def test_the_role_needs_each_right(account, connected, role, missing):
    allow(role, *(right for right in RIGHTS if right != missing))
    group = connected.group(f"without {missing}")
    reason = account.failure(variant(account, connected.subnet_ids, [group]))
    denied = role.denied(missing)
    assert reason.startswith(f"You are not authorized to perform this operation. {denied}")
    assert reason.endswith(f"because no identity-based policy allows the {missing} action")
    assert connected.interfaces() == []


def test_without_a_way_to_s3_the_model_data_does_not_come(account, network, connected, role):
    allow(role, *RIGHTS)
    unrouted = variant(account, network.subnet_ids, [network.group("unrouted")])
    assert account.failure(unrouted) == UNREACHABLE
    group = connected.closed_group("closed")
    closed = variant(account, connected.subnet_ids, [group])
    assert account.failure(closed) == UNREACHABLE
    # To the addresses of S3 alone.
    connected.open(group, PrefixListIds=[{"PrefixListId": connected.s3_prefix_list()}])
    account.delete(account.serve(closed))


def test_a_nat_gateway_is_a_way_and_an_internet_gateway_is_none(account, role):
    allow(role, *RIGHTS)
    network = make_network(account.client("ec2"))
    inside = variant(account, network.subnet_ids, [network.group("nat")])
    internet = network.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    network.ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=network.vpc_id)
    everywhere = {
        "RouteTableId": network.route_table_id,
        "DestinationCidrBlock": "0.0.0.0/0",
    }
    network.ec2.create_route(**everywhere, GatewayId=internet)
    assert account.failure(inside) == UNREACHABLE
    gateway = network.ec2.create_nat_gateway(
        SubnetId=network.subnet_ids[0], ConnectivityType="private"
    )["NatGateway"]["NatGatewayId"]
    network.ec2.replace_route(**everywhere, NatGatewayId=gateway)
    account.serve(inside)


def test_a_model_names_what_ec2_has(account, network, connected):
    subnets, group, other = network.subnet_ids, network.group("own"), connected.group("other")
    cases = [
        (("subnet-0a",), [group], "The subnet ID 'subnet-0a' does not exist"),
        (subnets, ["sg-0a"], "The security group 'sg-0a' does not exist"),
        (
            subnets,
            [other],
            f"Security group {other} and subnet {subnets[0]} belong to different networks.",
        ),
        (
            (*subnets, *connected.subnet_ids),
            [group],
            f"The subnets are in several VPCs: {sorted([network.vpc_id, connected.vpc_id])}.",
        ),
        (["subnet-0a"] * 17, [group], "less than or equal to 16"),
        (subnets, ["sg-0a"] * 6, "less than or equal to 5"),
    ]
    for named, groups, words in cases:
        assert words in refused(variant, account, named, groups)
