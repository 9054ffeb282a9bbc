"""Whether an execution role may publish metrics in a namespace.

The one decision of IAM that is made here: SageMaker publishes a machine's metrics as the execution
role, and without the right to do so they never appear, whatever else works.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator, Mapping
from typing import Any

from moto.iam.exceptions import NotFoundException
from moto.iam.models import iam_backends

from embedded_aws.identity import ACCOUNT_ID

_ACTION = "cloudwatch:putmetricdata"
# The one condition key of PutMetricData:
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazoncloudwatch.html
_NAMESPACE_KEY = "cloudwatch:namespace"


def may_publish_metrics(role_arn: str, namespace: str) -> bool:
    """Returns whether a role's inline and attached policies allow PutMetricData in a namespace.

    A deny wins. Permission boundaries and policies of an organization are not read. A statement
    with a condition on anything but the namespace does not hold.
    """
    try:
        # Straight from moto's back end: it is asked several times a minute for each variant.
        role = iam_backends[ACCOUNT_ID]["aws"].get_role(role_arn.rpartition("/")[2])
    except NotFoundException:
        return False
    effects = {
        statement["Effect"]
        for document in _documents(role)
        for statement in _listed(document["Statement"])
        if _concerns(statement, namespace)
    }
    return effects == {"Allow"}


# Any: moto ships no type information.
def _documents(role: Any) -> Iterator[Mapping[str, Any]]:
    for document in list(role.policies.values()):
        yield json.loads(document)
    for policy in list(role.managed_policies.values()):
        for version in list(policy.versions):
            if version.version_id == policy.default_version_id:
                yield json.loads(version.document)


def _concerns(statement: Mapping[str, Any], namespace: str) -> bool:
    if "NotAction" in statement:
        named = not _matches(statement["NotAction"], _ACTION, ignore_case=True)
    else:
        named = _matches(statement.get("Action", []), _ACTION, ignore_case=True)
    # PutMetricData has no resources: a statement about some does not concern it.
    everywhere = "*" in _listed(statement.get("Resource", []))
    return named and everywhere and _holds(statement.get("Condition", {}), namespace)


def _holds(conditions: Mapping[str, Mapping[str, Any]], namespace: str) -> bool:
    for operator, expected in conditions.items():
        for key, patterns in expected.items():
            if key.lower() != _NAMESPACE_KEY:
                return False
            if operator == "StringEquals":
                held = namespace in _listed(patterns)
            elif operator == "StringLike":
                held = _matches(patterns, namespace)
            else:
                held = False
            if not held:
                return False
    return True


def _matches(patterns: Any, value: str, *, ignore_case: bool = False) -> bool:
    for pattern in _listed(patterns):
        # Brackets are no wildcards in IAM.
        escaped = pattern.replace("[", "[[]")
        if fnmatch.fnmatchcase(value, escaped.lower() if ignore_case else escaped):
            return True
    return False


# Any: JSON.
def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
