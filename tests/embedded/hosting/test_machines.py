"""What an endpoint's machines use, and the roles that may say so."""

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from slipway.embedded_aws.hosting.fleets.machine_metrics import may_publish
from tests.embedded.hosting.conftest import Role
from tests.support.roles import MAY_USE_OBJECTS
from tests.support.waiting import eventually

NAMESPACE = "/aws/sagemaker/Endpoints"
ROLE = "arn:aws:iam::123456789012:role/publisher"


def allow(effect: str = "Allow", **members: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": "cloudwatch:PutMetricData", "Resource": "*", **members}


def on(namespace: str, operator: str = "StringEquals") -> dict[str, Any]:
    return {"Condition": {operator: {"cloudwatch:namespace": namespace}}}


def document(*statements: dict[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)})


@pytest.fixture
def iam() -> Iterator[Any]:
    with mock_aws():
        client = boto3.client("iam", region_name="us-east-1")
        client.create_role(RoleName="publisher", AssumeRolePolicyDocument="{}")
        yield client


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ([], False),
        ([allow(**on(NAMESPACE))], True),
        ([allow()], True),
        ([allow(Action="*")], True),
        ([allow(Action=["logs:*", "CloudWatch:Put*"])], True),
        ([allow(**on("/aws/sagemaker/*", "StringLike"))], True),
        ([allow(**on("/aws/sagemaker/TrainingJobs"))], False),
        # What people write: an equality with a wildcard equals nothing.
        ([allow(**on("/aws/sagemaker/*"))], False),
        ([allow(Action="cloudwatch:GetMetricData")], False),
        ([allow(Resource="arn:aws:cloudwatch:us-east-1:123456789012:*")], False),
        ([allow(Condition={"StringEquals": {"aws:RequestedRegion": "us-east-1"}})], False),
        ([allow(Condition={"StringNotEquals": {"cloudwatch:namespace": NAMESPACE}})], False),
        ([allow(), allow("Deny", Action="cloudwatch:*")], False),
        ([allow(), allow("Deny", **on("AWS/SageMaker"))], True),
    ],
)
def test_the_role_decides(iam, statements, expected):
    if statements:
        iam.put_role_policy(
            RoleName="publisher", PolicyName="p", PolicyDocument=document(*statements)
        )
    assert may_publish(ROLE) is expected


def test_attached_policies_count_with_their_default_version(iam):
    arn = iam.create_policy(PolicyName="m", PolicyDocument=document(allow()))["Policy"]["Arn"]
    assert not may_publish(ROLE)
    iam.attach_role_policy(RoleName="publisher", PolicyArn=arn)
    assert may_publish(ROLE)
    iam.create_policy_version(
        PolicyArn=arn, PolicyDocument=document(allow("Deny")), SetAsDefault=True
    )
    assert not may_publish(ROLE)


def test_a_role_that_is_gone_may_nothing(iam):
    iam.delete_role(RoleName="publisher")
    assert not may_publish(ROLE)


def test_machines_are_measured_for_roles_that_may_publish(hurried, monkeypatch):
    roles = [Role(hurried), Role(hurried)]
    publish = allow(**on(NAMESPACE))

    def serve(role: Role, *statements: dict[str, Any]) -> str:
        role.allow(*MAY_USE_OBJECTS["Statement"], *statements)
        monkeypatch.setattr(hurried, "role", role.arn)
        return hurried.endpoint()

    refused, allowed = serve(roles[0]), serve(roles[1], publish)

    def metrics(endpoint: str) -> set[str]:
        dimensions = [{"Name": "EndpointName", "Value": endpoint}]
        found = hurried.cloudwatch.list_metrics(Namespace=NAMESPACE, Dimensions=dimensions)
        return {metric["MetricName"] for metric in found["Metrics"]}

    expected = {"CPUUtilization", "DiskUtilization", "MemoryUtilization"}
    eventually(lambda: metrics(allowed) == expected)
    assert metrics(refused) == set()
    memory = hurried.metric(
        "MemoryUtilization", namespace=NAMESPACE, EndpointName=allowed, VariantName="AllTraffic"
    )
    # A Python program: more than nothing, and not the whole machine.
    assert 0 < memory["Maximum"] < 50
    assert memory["Unit"] == "Percent"
    # The next measurement asks again.
    roles[0].allow(*MAY_USE_OBJECTS["Statement"], publish)
    eventually(lambda: metrics(refused) == expected)
