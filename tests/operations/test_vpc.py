"""A model enters a VPC and leaves it while its fleet serves; its rights on data and keys."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from slipway.config.sections.network import Network as NetworkSection
from slipway.operations.leftovers import find_leftovers
from tests.support.networks import Network, make_network
from tests.support.prepared_accounts import synthesised_foundation
from tests.support.projects import LOCAL, model_config
from tests.support.slipway_stack import SlipwayStack, golden_template
from tests.support.waiting import eventually

pytestmark = pytest.mark.size("all")

NAME = "vpc-local"
POLICY = "RightsVpc"


@pytest.fixture(scope="module")
def network(stack: SlipwayStack) -> Network:
    made = make_network(stack.stacks.client("ec2"))
    made.connect_s3()
    return made


def template(
    stack: SlipwayStack, network: Network | None, group: str = "", case: str = "vpc"
) -> dict[str, Any]:
    """The golden template of a model in a network, or of the same model without one."""
    # But for its name, the model before it is attached.
    text = golden_template("fixed-count").replace("fixed-count", "vpc")
    if network is not None:
        text = golden_template(case)
        ids = ("subnet-0a1b2c3d", "subnet-4e5f6a7b", "sg-0a1b2c3d")
        for named, made in zip(ids, (*network.subnet_ids, group), strict=True):
            text = text.replace(named, made)
    return stack.deployable(text)


def policies(stack: SlipwayStack) -> list[str]:
    """Names of the policies that the execution role has besides its first."""
    iam = stack.stacks.client("iam")
    (role,) = (
        role["RoleName"]
        for role in iam.list_roles()["Roles"]
        if role.get("Description") == f"Runs {NAME}"
    )
    names = iam.list_role_policies(RoleName=role)["PolicyNames"]
    return [name for name in names if name != "Serving"]


def test_rights_come_before_the_new_fleet_and_go_after_the_old_one(
    stack: SlipwayStack, network: Network
) -> None:
    group = network.group("moves")
    stacks = stack.stacks
    assert stacks.create(NAME, template(stack, None)) == "CREATE_COMPLETE"
    assert policies(stack) == []
    assert network.interfaces() == []
    assert stacks.update(NAME, template(stack, network, group)) == "UPDATE_COMPLETE"
    (interface,) = network.interfaces()
    assert [each["GroupId"] for each in interface["Groups"]] == [group]
    assert len(policies(stack)) == 1
    history = stacks.history(NAME, "UPDATE_IN_PROGRESS")
    endpoint, model, policy = (
        next(line.split()[0] for line in history if line.startswith(prefix))
        for prefix in ("HostingEndpoint", "HostingModel", POLICY)
    )
    assert history.index(f"{policy} CREATE_COMPLETE") < history.index(f"{model} UPDATE_COMPLETE")
    assert stacks.update(NAME, template(stack, None)) == "UPDATE_COMPLETE"
    history = stacks.history(NAME, "UPDATE_IN_PROGRESS")
    assert history.index(f"{endpoint} UPDATE_COMPLETE") < history.index(
        f"{policy} DELETE_IN_PROGRESS"
    )
    assert policies(stack) == []
    assert network.interfaces() == []
    assert stacks.delete(NAME) == "DELETE_COMPLETE"


def test_the_role_is_deleted_after_the_interfaces(stack: SlipwayStack, network: Network) -> None:
    stacks = stack.stacks
    made = template(stack, network, network.group("goes"))
    assert stacks.create(NAME, made) == "CREATE_COMPLETE"
    stack_id = stacks.describe(NAME)["StackId"]
    assert len(network.interfaces()) == 1
    assert stacks.delete(NAME) == "DELETE_COMPLETE"
    assert network.interfaces() == []
    deleted = [
        next(name for name in made["Resources"] if name.startswith(prefix))
        for prefix in ("HostingEndpoint", "EndpointUpdateBefore", POLICY, "ExecutionRole")
    ]
    history = stacks.history(stack_id, "DELETE_IN_PROGRESS")
    for earlier, later in itertools.pairwise(deleted):
        ended = history.index(f"{earlier} DELETE_COMPLETE")
        assert ended < history.index(f"{later} DELETE_IN_PROGRESS")
    # What the previous release did: nothing waits between the endpoint and the role.
    del made["Resources"][deleted[1]]["Properties"]["Held"]
    assert stacks.create(NAME, made) == "CREATE_COMPLETE"
    assert stacks.delete(NAME) == "DELETE_COMPLETE"
    (left,) = network.interfaces()
    config = model_config("vpc", endpoint={"vpc": {"subnet_ids": network.subnet_ids}})
    (found,) = find_leftovers("vpc", LOCAL, stack.access, config)
    assert (found.kind, found.name) == ("network interface", left["NetworkInterfaceId"])
    network.ec2.delete_network_interface(NetworkInterfaceId=left["NetworkInterfaceId"])


def test_copies_of_a_component_run_in_the_network(stack: SlipwayStack, network: Network) -> None:
    stacks, name = stack.stacks, "scale-to-zero-vpc-local"
    made = template(stack, network, network.group("copies"), "scale-to-zero-vpc")
    assert stacks.create(name, made) == "CREATE_COMPLETE"
    answer = stacks.client("sagemaker-runtime").invoke_endpoint(
        EndpointName=name, InferenceComponentName=name, Body=b"from the network"
    )
    assert answer["Body"].read() == b"from the network"
    assert stacks.delete(name) == "DELETE_COMPLETE"
    assert network.interfaces() == []


def test_a_group_that_does_not_reach_s3_leaves_the_old_fleet(
    stack: SlipwayStack, network: Network
) -> None:
    stacks = stack.stacks
    assert stacks.create(NAME, template(stack, None)) == "CREATE_COMPLETE"
    closed = template(stack, network, network.closed_group("closed"))
    assert stacks.update(NAME, closed) == "UPDATE_ROLLBACK_COMPLETE"
    endpoint = next(
        name
        for name, resource in closed["Resources"].items()
        if resource["Type"] == "AWS::SageMaker::Endpoint"
    )
    assert "Please ensure that an S3 VPC endpoint exists in route table or NAT gateway" in (
        stacks.reason(NAME, endpoint, "UPDATE_FAILED")
    )
    runtime = stacks.client("sagemaker-runtime")
    answer = runtime.invoke_endpoint(EndpointName=NAME, Body=b"still there")
    assert answer["Body"].read() == b"still there"
    assert policies(stack) == []
    assert network.interfaces() == []
    assert stacks.delete(NAME) == "DELETE_COMPLETE"


def test_the_foundation_makes_a_group_and_a_way_to_s3(stack: SlipwayStack, tmp_path: Path) -> None:
    made = make_network(stack.stacks.client("ec2"))
    environment = LOCAL.model_copy(
        update={
            "name": "networked",
            "network": NetworkSection(
                vpc_id=made.vpc_id,
                subnet_ids=made.subnet_ids,
                vpc_endpoints=("s3", "ecr", "logs", "monitoring", "sts"),
                route_table_ids=(made.route_table_id,),
            ),
        }
    )
    rendered = synthesised_foundation(environment, tmp_path).template
    # What its function does is another test's; its package is not here.
    kept = {
        name: {key: value for key, value in resource.items() if key != "DependsOn"}
        for name, resource in rendered["Resources"].items()
        if resource["Type"].startswith("AWS::EC2::") or name == "SecurityGroupId"
    }
    stacks, ec2 = stack.stacks, stack.stacks.client("ec2")
    network_alone = {"Parameters": rendered.get("Parameters", {}), "Resources": kept}
    assert stacks.create("network-alone", network_alone) == "CREATE_COMPLETE"
    found = ec2.describe_vpc_endpoints(Filters=[{"Name": "vpc-id", "Values": [made.vpc_id]}])
    services = sorted(each["ServiceName"] for each in found["VpcEndpoints"])
    prefix = f"com.amazonaws.{LOCAL.region}"
    assert services == [
        f"{prefix}.{service}"
        for service in ("ecr.api", "ecr.dkr", "logs", "monitoring", "s3", "sts")
    ]
    parameter = f"/slipway/{environment.name}/security-group-id"
    group = stacks.client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"]
    (described,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
    assert described["IpPermissions"] == []
    (rule,) = described["IpPermissionsEgress"]
    assert (rule["IpProtocol"], rule["FromPort"], rule["ToPort"]) == ("tcp", 443, 443)
    text = template(stack, made, group)
    assert stacks.create(NAME, text) == "CREATE_COMPLETE"
    # The endpoint's interface holds the group, so the foundation is destroyed last.
    assert stacks.delete("network-alone") == "DELETE_FAILED"
    assert stacks.delete(NAME) == "DELETE_COMPLETE"
    assert stacks.delete("network-alone") == "DELETE_COMPLETE"


# Data and keys

BUCKET = "my-capture"
# The keys in the golden cases.
CAPTURE_KEY = "1234abcd-12ab-34cd-56ef-1234567890ab"
VOLUME_KEY = "0a1b2c3d-4e5f-6a7b-8c9d-0e1f2a3b4c5d"


def make_key(stack: SlipwayStack) -> str:
    key: str = stack.stacks.client("kms").create_key()["KeyMetadata"]["KeyId"]
    return key


def test_captured_requests_come_back_from_the_bucket(stack: SlipwayStack) -> None:
    key = make_key(stack)
    text = golden_template("data-capture").replace(CAPTURE_KEY, key)
    text = text.replace('"InitialSamplingPercentage": 10', '"InitialSamplingPercentage": 100')
    name, s3 = "data-capture-local", stack.stacks.client("s3")
    s3.create_bucket(Bucket=BUCKET)
    assert stack.stacks.create(name, stack.deployable(text)) == "CREATE_COMPLETE"
    runtime = stack.stacks.client("sagemaker-runtime")
    sent = {"EndpointName": name, "Body": b"{}", "ContentType": "application/json"}
    assert runtime.invoke_endpoint(**sent)["Body"].read() == b"{}"

    def written() -> list[str]:
        listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=f"tiny/{name}/AllTraffic/")
        return [item["Key"] for item in listed.get("Contents", [])]

    (path,) = eventually(written)
    found = s3.get_object(Bucket=BUCKET, Key=path)
    assert found["SSEKMSKeyId"].endswith(key)
    (line,) = found["Body"].read().splitlines()
    # The case captures requests alone.
    assert json.loads(line)["captureData"] == {
        "endpointInput": {
            "observedContentType": "application/json",
            "mode": "INPUT",
            "data": "{}",
            "encoding": "JSON",
        }
    }
    assert stack.stacks.delete(name) == "DELETE_COMPLETE"
    assert written() == [path]


def test_another_volume_key_takes_its_right_along(stack: SlipwayStack) -> None:
    text, name, stacks = golden_template("volume-key"), "volume-key-local", stack.stacks
    kms = stacks.client("kms")
    first, second = make_key(stack), make_key(stack)
    template = stack.deployable(text.replace(VOLUME_KEY, first))
    assert stacks.create(name, template) == "CREATE_COMPLETE"
    assert len(kms.list_grants(KeyId=first)["Grants"]) == 1
    # The policy's name and logical id follow from the key.
    other = text.replace(VOLUME_KEY, second).replace("RightsVolumeKey", "RightsOtherVolumeKey")
    other = other.replace('"PolicyName": "VolumeKey', '"PolicyName": "OtherVolumeKey')
    assert stacks.update(name, stack.deployable(other)) == "UPDATE_COMPLETE"
    assert kms.list_grants(KeyId=first)["Grants"] == []
    assert len(kms.list_grants(KeyId=second)["Grants"]) == 1
    assert stacks.delete(name) == "DELETE_COMPLETE"
    # The role was kept until the grant was gone.
    assert kms.list_grants(KeyId=second)["Grants"] == []
