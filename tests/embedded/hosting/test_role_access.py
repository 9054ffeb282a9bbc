"""Model data is read as the execution role: a role that may not read it makes no model."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.roles import make_role

BUCKET = "arn:aws:s3:::artifacts"
READ = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": f"{BUCKET}/model/*"}
LIST = {
    "Effect": "Allow",
    "Action": "s3:ListBucket",
    "Resource": BUCKET,
    "Condition": {"StringLike": {"s3:prefix": "model/*"}},
}


def document(*statements: dict[str, Any]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": list(statements)}


@pytest.fixture
def role(account: Any) -> Iterator[str]:
    iam = account.clients.client("iam", "us-east-1")
    account.role = make_role(iam, "reader", document(READ, LIST))
    yield account.role
    del account.role
    iam.delete_role_policy(RoleName="reader", PolicyName="p")
    iam.delete_role(RoleName="reader")


def allow(account: Any, *statements: dict[str, Any]) -> None:
    account.clients.client("iam", "us-east-1").put_role_policy(
        RoleName="reader", PolicyName="p", PolicyDocument=json.dumps(document(*statements))
    )


def test_a_role_that_may_list_and_read_its_prefix_serves_it(account: Any, role: str) -> None:
    account.delete(account.endpoint())


@pytest.mark.parametrize(
    "statements",
    [
        [READ],
        [LIST],
        [LIST, READ | {"Resource": f"{BUCKET}/other/*"}],
        [READ, LIST | {"Condition": {"StringLike": {"s3:prefix": "other/*"}}}],
        [READ, LIST, {"Effect": "Deny", "Action": "s3:*", "Resource": f"{BUCKET}/model/*"}],
    ],
)
def test_any_other_role_makes_no_model(
    account: Any, role: str, statements: list[dict[str, Any]]
) -> None:
    allow(account, *statements)
    with pytest.raises(ClientError) as caught:
        account.model()
    assert caught.value.response["Error"] == {
        "Code": "ValidationException",
        "Message": "Could not access model data at s3://artifacts/model/files/. Please ensure that "
        f'the role "{role}" exists and that its trust relationship policy allows the action '
        '"sts:AssumeRole" for the service principal "sagemaker.amazonaws.com". Also ensure that '
        'the role has "s3:GetObject" permissions and that the object is located in us-east-1. If '
        "your Model uses multiple models or uncompressed models, please ensure that the role has "
        '"s3:ListBucket" permission.',
    }


def test_an_endpoint_fails_where_the_role_may_not_decrypt(account: Any, role: str) -> None:
    keys = [
        account.clients.client("kms", "us-east-1").create_key()["KeyMetadata"]["Arn"]
        for _ in range(2)
    ]
    account.s3.put_object(
        Bucket="artifacts",
        Key="model/encrypted/config.json",
        Body=b"{}",
        ServerSideEncryption="aws:kms",
        SSEKMSKeyId=keys[0],
    )
    model = account.model(**account.source("s3://artifacts/model/encrypted/"))
    decrypt = {"Effect": "Allow", "Action": "kms:Decrypt", "Resource": keys[1]}
    allow(account, READ, LIST, decrypt)
    name = account.begin(account.config(account.variant(model)))
    failed = account.settled(name)
    assert failed["EndpointStatus"] == "Failed"
    assert (
        "arn:aws:sts::123456789012:assumed-role/reader/SageMaker is not authorized to perform: "
        f'kms:Decrypt on resource: "{keys[0]}" because no identity-based policy allows the '
        "kms:Decrypt action"
    ) in failed["FailureReason"]
    account.delete(name)
    allow(account, READ, LIST, decrypt | {"Resource": keys})
    name = account.begin(account.config(account.variant(model)))
    assert account.settled(name)["EndpointStatus"] == "InService"
    account.delete(name)


def test_a_permissions_boundary_limits_the_role(account: Any, role: str) -> None:
    iam = account.clients.client("iam", "us-east-1")
    boundaries = {
        name: iam.create_policy(PolicyName=name, PolicyDocument=json.dumps(document(*statements)))[
            "Policy"
        ]["Arn"]
        for name, statements in {"wide": [READ, LIST], "narrow": [LIST]}.items()
    }
    iam.put_role_permissions_boundary(RoleName="reader", PermissionsBoundary=boundaries["wide"])
    account.model()
    iam.put_role_permissions_boundary(RoleName="reader", PermissionsBoundary=boundaries["narrow"])
    with pytest.raises(ClientError, match="Could not access model data"):
        account.model()
    iam.delete_role_permissions_boundary(RoleName="reader")
    account.model()
    for arn in boundaries.values():
        iam.delete_policy(PolicyArn=arn)
