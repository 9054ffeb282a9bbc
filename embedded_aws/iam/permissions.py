"""Evaluates the policies of an execution role.

IAM decides few things here, and moto evaluates no conditions. SageMaker does two things as the
execution role that a team relies on: it reads model data, and it publishes the metrics of machines.
Policies of keys are not read, because Slipway's leave the decision to the role. Of a bucket's
policy, `is_denied` reads what it denies to everybody.
"""

import fnmatch
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends

from slipway.embedded_aws.identity import ACCOUNT_ID

# Decisions: https://docs.aws.amazon.com/IAM/latest/APIReference/API_EvaluationResult.html
_ALLOWED, _DENIED, _UNNAMED = "allowed", "explicitDeny", "implicitDeny"
_ANY_VALUE = "ForAnyValue:"
# Values of condition keys, whose names are in lower case.
Context = Mapping[str, str | list[str]]


# Any: JSON.
def listed(value: Any) -> list[Any]:
    """Returns a list of one value for a single value, and a list as it is."""
    return value if isinstance(value, list) else [value]


def matches(patterns: Any, value: str, *, ignore_case: bool = False) -> bool:
    """Returns whether a value matches one pattern or one of a list, with IAM's wildcards.

    If the patterns' case is ignored, the value is in lower case.
    """
    for pattern in listed(patterns):
        # Brackets are no wildcards in IAM.
        escaped = pattern.replace("[", "[[]")
        if fnmatch.fnmatchcase(value, escaped.lower() if ignore_case else escaped):
            return True
    return False


def may(role_arn: str, action: str, resource: str, context: Context | None = None) -> bool:
    """Returns whether a role's policies and boundary allow an action; see `decision`."""
    return decision(role_arn, action, resource, context or {}) == _ALLOWED


def decision(role_arn: str, action: str, resource: str, context: Context) -> str:
    """Returns IAM's decision, as SimulatePrincipalPolicy names it.

    A deny wins. Policies of an organization are not read. A statement with a condition key that is
    not in `context` does not apply. A role that does not exist may do nothing. The resource is an
    ARN, or `*` for an action without resources.
    """
    try:
        # Read from moto's back end, because this is called several times a minute for each variant.
        role = iam_backends[ACCOUNT_ID]["aws"].get_role(role_arn.rpartition("/")[2])
    except NotFoundException:
        return _UNNAMED
    request = (action.lower(), resource, context)
    decided = _decided(_documents(role), *request)
    boundary = role.permissions_boundary_arn
    if decided != _ALLOWED or not boundary:
        return decided
    return _decided(_boundary(boundary), *request)


def is_denied(policy: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    """Returns whether a resource's policy denies an action to everybody."""
    denials = [
        statement
        for statement in listed(policy["Statement"])
        if statement["Effect"] == "Deny" and statement.get("Principal") in ("*", {"AWS": "*"})
    ]
    return _decided([{"Statement": denials}], action.lower(), resource, context) == _DENIED


def _decided(
    documents: Iterable[Mapping[str, Any]], action: str, resource: str, context: Context
) -> str:
    effects = {
        statement["Effect"]
        for document in documents
        for statement in listed(document["Statement"])
        if _concerns(statement, action, resource, context)
    }
    if "Deny" in effects:
        return _DENIED
    return _ALLOWED if effects else _UNNAMED


def _boundary(arn: str) -> Iterator[Mapping[str, Any]]:
    """Yields the document of a boundary; nothing, which allows nothing, if the policy is gone."""
    policy = iam_backends[ACCOUNT_ID]["aws"].managed_policies.get(arn)
    if policy is not None:
        yield from _default_version(policy)


# Any: moto ships no type information.
def _documents(role: Any) -> Iterator[Mapping[str, Any]]:
    for document in list(role.policies.values()):
        yield json.loads(document)
    for policy in list(role.managed_policies.values()):
        yield from _default_version(policy)


def _default_version(policy: Any) -> Iterator[Mapping[str, Any]]:
    for version in list(policy.versions):
        if version.version_id == policy.default_version_id:
            yield json.loads(version.document)


def _concerns(statement: Mapping[str, Any], action: str, resource: str, context: Context) -> bool:
    if "NotAction" in statement:
        named = not matches(statement["NotAction"], action, ignore_case=True)
    else:
        named = matches(statement.get("Action", []), action, ignore_case=True)
    return (
        named
        and matches(statement.get("Resource", []), resource)
        and _holds(statement.get("Condition", {}), context)
    )


def _holds(conditions: Mapping[str, Mapping[str, Any]], context: Context) -> bool:
    for operator, expected in conditions.items():
        for key, patterns in expected.items():
            values = listed(context.get(key.lower(), []))
            # With one value, the operator for several is the same.
            plain = operator.removeprefix(_ANY_VALUE)
            if plain == "Null":
                held = (not values) == (str(patterns).lower() == "true")
            elif plain == "Bool":
                held = str(patterns).lower() in values
            elif plain == "StringEquals":
                held = any(value in listed(patterns) for value in values)
            elif plain == "StringLike":
                held = any(matches(patterns, value) for value in values)
            else:
                held = False
            if not held:
                return False
    return True
