"""Bucket policies whose statements have conditions.

moto denies a request whenever a statement's condition does not hold, even a statement that denies:
a bucket that refuses plain HTTP would refuse everything. This loopback port stands for TLS and for
the account's own principals, so what is left to decide are the statements without conditions.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket


def _get_permission(bucket: Any, action: str, resource: str) -> PermissionResult:
    """Replaces moto's method of the same name; the policy itself stays as it was put."""
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    document = json.loads(bucket.policy)
    statements = document["Statement"]
    if isinstance(statements, dict):
        statements = [statements]
    document["Statement"] = [found for found in statements if not found.get("Condition")]
    return IAMPolicy(json.dumps(document)).is_action_permitted(action, resource)


def enforce_unconditional_statements() -> None:
    """Lets this process's S3 decide by the statements without conditions."""
    FakeBucket.get_permission = _get_permission
