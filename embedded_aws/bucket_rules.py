"""Where moto's buckets are stricter than S3, and stacks that deploy to AWS would fail here.

- moto denies an object to everyone as soon as a Deny statement of the bucket policy names it,
  whatever the statement's condition says. Nearly every bucket has such a statement: no access
  except over TLS. Requests to a loopback port are not over TLS, and what other conditions ask for
  (VPC endpoints, organisations, services that call on one's behalf) does not exist here. So
  conditional statements are stored and shown, and not enforced.
- moto refuses an access log's target bucket until its policy lets the logging service write. S3
  takes the configuration; CDK creates that policy after the bucket that is logged.
"""

from __future__ import annotations

import json
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket


def relax_bucket_rules() -> None:
    """Makes moto's buckets accept what S3 accepts; for the whole process, and once is enough."""
    FakeBucket.get_permission = _permission
    FakeBucket._log_permissions_enabled_policy = staticmethod(_logging_is_permitted)


def _permission(bucket: Any, action: str, resource: str) -> Any:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    policy = json.loads(bucket.policy.decode())
    declared = policy.get("Statement", [])
    statements = declared if isinstance(declared, list) else [declared]
    unconditional = [statement for statement in statements if not statement.get("Condition")]
    enforced = IAMPolicy(json.dumps({**policy, "Statement": unconditional}))
    return enforced.is_action_permitted(action, resource)


def _logging_is_permitted(**_: Any) -> bool:
    return True
