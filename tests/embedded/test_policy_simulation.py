"""SimulatePrincipalPolicy: what a role's policies and its boundary decide."""

import itertools
import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.clients import LoopbackClients
from tests.support.roles import make_role

OBJECTS = "arn:aws:s3:::models/artifacts/*"
ALLOWED, UNNAMED, DENIED = "allowed", "implicitDeny", "explicitDeny"
_numbers = itertools.count()


@pytest.fixture(scope="module")
def iam(clients: LoopbackClients) -> Any:
    return clients.client("iam", "us-east-1")


@pytest.fixture
def role(iam: Any) -> str:
    return make_role(iam, f"simulated-{next(_numbers)}", policy([]))


def policy(statements: list[dict[str, Any]]) -> dict[str, Any]:
    none = {"Effect": "Allow", "Action": "sts:GetCallerIdentity", "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [none, *statements]}


def statement(effect: str = "Allow", **members: Any) -> dict[str, Any]:
    return {"Effect": effect, "Action": "s3:GetObject", "Resource": OBJECTS, **members}


def put(iam: Any, role: str, *statements: dict[str, Any]) -> None:
    document = json.dumps(policy(list(statements)))
    iam.put_role_policy(
        RoleName=role.rpartition("/")[2], PolicyName="simulated", PolicyDocument=document
    )


def decisions(iam: Any, role: str, *actions: str, **request: Any) -> list[str]:
    answer = iam.simulate_principal_policy(
        PolicySourceArn=role,
        ActionNames=list(actions) or ["s3:GetObject"],
        **{"ResourceArns": [OBJECTS], **request},
    )
    assert answer["IsTruncated"] is False
    return [result["EvalDecision"] for result in answer["EvaluationResults"]]


def test_policies_allow_deny_or_name_nothing(iam: Any, role: str) -> None:
    assert decisions(iam, role) == [UNNAMED]
    put(iam, role, statement())
    assert decisions(iam, role, "s3:GetObject", "s3:PutObject") == [ALLOWED, UNNAMED]
    put(iam, role, statement(), statement("Deny", Resource="*"))
    assert decisions(iam, role) == [DENIED]


def test_a_wildcard_that_is_asked_for_needs_one_as_wide(iam: Any, role: str) -> None:
    put(iam, role, statement(Resource="arn:aws:s3:::models/artifacts/one/*"))
    one = "arn:aws:s3:::models/artifacts/one/a"
    assert decisions(iam, role, ResourceArns=[OBJECTS, one]) == [UNNAMED, ALLOWED]


@pytest.mark.parametrize(
    ("operator", "values", "expected"),
    [
        ("StringEquals", ["artifacts/*"], ALLOWED),
        ("StringEquals", ["weights/*"], UNNAMED),
        ("ForAnyValue:StringEquals", ["weights/*", "artifacts/*"], ALLOWED),
        ("StringEquals", None, UNNAMED),
        ("NumericLessThan", ["artifacts/*"], UNNAMED),
    ],
)
def test_conditions_hold_in_the_given_context(
    iam: Any, role: str, operator: str, values: list[str] | None, expected: str
) -> None:
    put(iam, role, statement(Condition={operator: {"s3:prefix": "artifacts/*"}}))
    entry = {"ContextKeyName": "s3:Prefix", "ContextKeyType": "stringList"}
    context = [] if values is None else [{**entry, "ContextKeyValues": values}]
    assert decisions(iam, role, ContextEntries=context) == [expected]


def test_a_boundary_limits_the_role(iam: Any, role: str) -> None:
    put(iam, role, statement())
    document = json.dumps(policy([statement(Action="s3:PutObject")]))
    boundary = iam.create_policy(PolicyName="limit", PolicyDocument=document)["Policy"]["Arn"]
    iam.put_role_permissions_boundary(
        RoleName=role.rpartition("/")[2], PermissionsBoundary=boundary
    )
    assert decisions(iam, role) == [UNNAMED]


def test_what_is_not_simulated_is_refused(iam: Any, role: str) -> None:
    with pytest.raises(ClientError, match="does not emulate PolicyInputList of Simulate"):
        decisions(iam, role, PolicyInputList=[json.dumps(policy([]))])
    user = "arn:aws:iam::123456789012:user/somebody"
    with pytest.raises(ClientError, match="simulates the policies of roles only"):
        decisions(iam, user)
    with pytest.raises(ClientError) as missing:
        decisions(iam, "arn:aws:iam::123456789012:role/nobody")
    assert missing.value.response["Error"]["Code"] == "NoSuchEntity"
