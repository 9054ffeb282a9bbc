"""An endpoint whose volumes have a key: a grant while it runs, and the role's right to make it."""

from typing import Any

import pytest

from tests.embedded.hosting.conftest import Account, Role
from tests.support.roles import MAY_USE_OBJECTS
from tests.support.waiting import eventually


@pytest.fixture(scope="module")
def kms(account: Account) -> Any:
    return account.client("kms")


@pytest.fixture
def key(kms: Any) -> str:
    return kms.create_key()["KeyMetadata"]["Arn"]


def allow_grants(role: Role, key: str) -> None:
    grants = {"Effect": "Allow", "Action": "kms:CreateGrant", "Resource": key}
    role.allow(*MAY_USE_OBJECTS["Statement"], grants)


def failure(account: Account, key: str) -> str:
    return account.failure(account.variant(account.model()), KmsKeyId=key)


def test_a_grant_goes_after_the_endpoint(account, kms, role, key):
    allow_grants(role, key)
    name = account.serve(account.variant(account.model()), KmsKeyId=key)
    (grant,) = kms.list_grants(KeyId=key)["Grants"]
    assert grant["GranteePrincipal"] == role.arn
    account.delete(name)
    eventually(lambda: kms.list_grants(KeyId=key)["Grants"] == [])


def test_the_role_needs_the_right_on_this_key(account, kms, role, key):
    allow_grants(role, kms.create_key()["KeyMetadata"]["Arn"])
    assert failure(account, key) == (
        f'{role.denied("kms:CreateGrant")} on resource: "{key}" because no identity-based policy '
        "allows the kms:CreateGrant action"
    )


def test_the_key_is_there_and_enabled(account, kms, role, key):
    allow_grants(role, "*")
    key_id = key.rpartition("/")[2]
    kms.disable_key(KeyId=key_id)
    assert failure(account, key) == f"{key} is disabled."
    kms.schedule_key_deletion(KeyId=key_id)
    assert failure(account, key) == f"{key} is pending deletion."
    assert "does not exist" in failure(account, key.replace(key[-4:], "0000"))
    pair = kms.create_key(KeySpec="RSA_2048", KeyUsage="ENCRYPT_DECRYPT")["KeyMetadata"]["Arn"]
    assert failure(account, pair) == f"{pair} is no symmetric key, and volumes take no other."
