"""What is left of a model after its stack."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from moto.ec2.models import ec2_backends

from slipway.access import Access
from slipway.operations.leftovers import Leftover, find_kept, find_leftovers, find_stacks
from tests.support.accounts import access_to, embedded_aws
from tests.support.networks import make_network
from tests.support.projects import DIGEST, LOCAL, model_config
from tests.support.roles import make_role
from tests.support.stacks import tags_of


@pytest.fixture
def access(tmp_path: Path) -> Iterator[Access]:
    with embedded_aws(tmp_path) as server:
        yield access_to(server.connection.url)


def test_what_an_isolated_model_leaves_on_purpose_is_named(access):
    assert find_kept("tiny", LOCAL, access) == []
    s3 = access.client("s3")
    s3.create_bucket(Bucket=LOCAL.artifact_bucket)
    for key, used in (
        (f"artifacts/{DIGEST}/manifest.json", "shared"),
        (f"models/tiny-2/artifacts/{DIGEST}/manifest.json", "another"),
        (f"models/tiny/artifacts/{DIGEST}/files/a/manifest.json", "no"),
        (f"models/tiny/artifacts/{DIGEST}/manifest.json", "own"),
    ):
        s3.put_object(
            Bucket=LOCAL.artifact_bucket, Key=key, Body=b"",
            ServerSideEncryption="aws:kms", SSEKMSKeyId=used,
        )  # fmt: skip
    assert find_kept("tiny", LOCAL, access) == [
        Leftover("artifacts", f"s3://{LOCAL.artifact_bucket}/models/tiny/"),
        Leftover("key", "own"),
    ]
    # It is no reason to fail.
    assert find_leftovers("tiny", LOCAL, access) == []


def test_models_of_another_project_are_not_left_over(access):
    search = LOCAL.model_copy(update={"project": "search"})
    sagemaker = access.client("sagemaker")
    make_role(access.client("iam"), "serving")
    for name, project in (("plain", ""), ("searchs", "search")):
        tags = {"slipway:model": "tiny", "slipway:environment": "local"}
        tags |= {"slipway:project": project} if project else {}
        sagemaker.create_model(
            ModelName=name,
            ExecutionRoleArn="arn:aws:iam::123456789012:role/serving",
            PrimaryContainer={"Image": f"123456789012.dkr.ecr.{LOCAL.region}.amazonaws.com/tiny:1"},
            Tags=tags_of(tags),
        )
    assert find_leftovers("tiny", LOCAL, access) == [Leftover("model", "plain")]
    assert find_leftovers("tiny", search, access) == [Leftover("model", "searchs")]


def test_what_is_left_of_a_model_is_told_from_its_neighbours(access):
    logs, alarms = access.client("logs"), access.client("cloudwatch")
    for name in ("tiny-local", "tiny-local-2"):
        logs.create_log_group(logGroupName=f"/aws/sagemaker/Endpoints/{name}")
        alarms.put_metric_alarm(
            AlarmName=f"{name}-Latency",
            Namespace="AWS/SageMaker",
            MetricName="ModelLatency",
            Dimensions=[{"Name": "EndpointName", "Value": name}],
            ComparisonOperator="GreaterThanThreshold",
            EvaluationPeriods=1,
            Period=60,
            Statistic="Average",
            Threshold=1,
        )
    assert find_leftovers("tiny", LOCAL, access) == [
        Leftover("alarm", "tiny-local-Latency"),
        Leftover("log group", "/aws/sagemaker/Endpoints/tiny-local"),
    ]
    for name in ("tiny-local", "tiny-local-2"):
        logs.delete_log_group(logGroupName=f"/aws/sagemaker/Endpoints/{name}")
    alarms.delete_alarms(AlarmNames=["tiny-local-Latency", "tiny-local-2-Latency"])
    assert find_leftovers("tiny", LOCAL, access) == []


def test_what_sagemaker_cannot_give_back_without_its_role_is_left_over(access):
    ec2, iam, kms = (access.client(service) for service in ("ec2", "iam", "kms"))
    subnet, other = make_network(ec2).subnet_ids
    key = kms.create_key()["KeyMetadata"]["Arn"]
    config = model_config(endpoint={"vpc": {"subnet_ids": [subnet]}, "volume_key_arn": key})
    roles = {name: make_role(iam, name) for name in ("lives", "gone")}
    ids = {name: iam.get_role(RoleName=name)["Role"]["RoleId"] for name in roles}
    interfaces, grants = {}, {}
    for requester, place in (
        (f"{ids['lives']}:SageMaker", subnet),
        (f"{ids['gone']}:SageMaker", subnet),
        (f"{ids['gone']}:somebody", subnet),
        (f"{ids['gone']}:SageMaker", other),
        ("amazon-elb", subnet),
    ):
        made = ec2.create_network_interface(SubnetId=place)["NetworkInterface"]
        interfaces[requester, place] = made["NetworkInterfaceId"]
        backend = ec2_backends[LOCAL.account][LOCAL.region]
        backend.enis[made["NetworkInterfaceId"]].requester_id = requester
    for principal in (*roles.values(), ids["gone"], "arn:aws:iam::999999999999:role/gone"):
        made = kms.create_grant(KeyId=key, GranteePrincipal=principal, Operations=["Decrypt"])
        grants[principal] = made["GrantId"]
    iam.delete_role_policy(RoleName="gone", PolicyName="p")
    iam.delete_role(RoleName="gone")
    left = interfaces[f"{ids['gone']}:SageMaker", subnet]
    revoke = f"its role is gone: run `aws kms revoke-grant --key-id {key} --grant-id"
    assert find_leftovers("tiny", LOCAL, access, config) == [
        *(
            Leftover("key grant", grant, f"{revoke} {grant}`")
            for grant in sorted([grants[roles["gone"]], grants[ids["gone"]]])
        ),
        Leftover(
            "network interface",
            left,
            "its role is gone: run `aws ec2 delete-network-interface --network-interface-id "
            f"{left}`",
        ),
    ]
    assert find_leftovers("tiny", LOCAL, access) == []


def test_stacks_of_models_without_a_file_are_found_by_their_tags(access):
    cloudformation = access.client("cloudformation")
    topic = '{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'
    search = {"slipway:project": "search"}
    for stack, tags in {
        "foundation-local": {"slipway:environment": "local"},
        "tiny-local": {"slipway:model": "tiny", "slipway:environment": "local"},
        "gone-local": {"slipway:model": "gone", "slipway:environment": "local"},
        "artifacts-gone-local": {"slipway:model": "gone", "slipway:environment": "local"},
        "gone-production": {"slipway:model": "gone", "slipway:environment": "production"},
        "search--gone-local": {"slipway:model": "gone", "slipway:environment": "local", **search},
    }.items():
        cloudformation.create_stack(StackName=stack, TemplateBody=topic, Tags=tags_of(tags))
        cloudformation.get_waiter("stack_create_complete").wait(
            StackName=stack, WaiterConfig={"Delay": 0.05}
        )
    assert sorted(find_stacks(LOCAL, access, ["tiny"]), key=lambda item: item.name) == [
        Leftover(
            "stack",
            "artifacts-gone-local",
            "CREATE_COMPLETE, without model_configs/gone.yaml: run `aws cloudformation "
            "delete-stack --stack-name artifacts-gone-local`",
        ),
        Leftover(
            "stack",
            "gone-local",
            "CREATE_COMPLETE, without model_configs/gone.yaml: run `cdk destroy gone -c "
            "models=gone -c env=local`",
        ),
    ]
