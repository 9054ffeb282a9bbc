"""An endpoint whose volumes have a key: a grant while it runs, and the role's right to make it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.roles import MAY_USE_OBJECTS, make_role


@pytest.fixture(scope="module")
def kms(account: Any) -> Any:
    return account.clients.client("kms", "us-east-1")


@pytest.fixture
def key(kms: Any) -> str:
    arn: str = kms.create_key()["KeyMetadata"]["Arn"]
    return arn


@pytest.fixture
def role(account: Any) -> Iterator[str]:
    iam = account.clients.client("iam", "us-east-1")
    account.role = make_role(iam, "granting")
    yield account.role
    del account.role
    iam.delete_role_policy(RoleName="granting", PolicyName="p")
    iam.delete_role(RoleName="granting")


def allow_grants(account: Any, key: str) -> None:
    statement = {"Effect": "Allow", "Action": "kms:CreateGrant", "Resource": key}
    document = MAY_USE_OBJECTS | {"Statement": [*MAY_USE_OBJECTS["Statement"], statement]}
    account.clients.client("iam", "us-east-1").put_role_policy(
        RoleName="granting", PolicyName="p", PolicyDocument=json.dumps(document)
    )


def outcome(account: Any, key: str) -> tuple[str, str]:
    """Starts an endpoint with the key; returns its name, and the reason if it failed."""
    config = account.config(account.variant(account.model()), KmsKeyId=key)
    name = account.begin(config)
    return name, account.settled(name).get("FailureReason", "")


def test_a_grant_lasts_as_long_as_the_endpoint(account: Any, kms: Any, role: str, key: str) -> None:
    allow_grants(account, key)
    name, reason = outcome(account, key)
    assert reason == ""
    (grant,) = kms.list_grants(KeyId=key)["Grants"]
    assert grant["GranteePrincipal"] == role
    account.delete(name)
    assert kms.list_grants(KeyId=key)["Grants"] == []


def test_the_role_needs_the_right_on_this_key(account: Any, kms: Any, role: str, key: str) -> None:
    other = kms.create_key()["KeyMetadata"]["Arn"]
    allow_grants(account, other)
    name, reason = outcome(account, key)
    assert reason == (
        "User: arn:aws:sts::123456789012:assumed-role/granting/SageMaker is not authorized to "
        f'perform: kms:CreateGrant on resource: "{key}" because no identity-based policy allows '
        "the kms:CreateGrant action"
    )
    account.delete(name)


def test_the_key_is_there_and_enabled(account: Any, kms: Any, role: str, key: str) -> None:
    allow_grants(account, "*")
    key_id = key.rpartition("/")[2]
    kms.disable_key(KeyId=key_id)
    name, reason = outcome(account, key)
    assert reason == f"{key} is disabled."
    account.delete(name)
    kms.schedule_key_deletion(KeyId=key_id)
    name, reason = outcome(account, key)
    assert reason == f"{key} is pending deletion."
    account.delete(name)
    missing = key.replace(key[-4:], "0000")
    name, reason = outcome(account, missing)
    assert "does not exist" in reason
    account.delete(name)
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    name, reason = outcome(account, pair)
    assert reason == f"{pair} is no symmetric key, and volumes take no other."
    account.delete(name)
