"""Patches moto's buckets where they are stricter than S3's.

Without this, stacks that deploy to AWS would fail here.

- moto denies an object to everyone as soon as a Deny statement of the bucket policy names it,
  whatever the statement's condition says. Nearly every bucket has such a statement: no access
  except over TLS. Requests to a loopback port are not over TLS. The subjects of other conditions
  (VPC endpoints, organisations, services that call on one's behalf) do not exist here. moto is
  therefore shown no conditional statement. `embedded_aws/objects.py` enforces those about writes.
- moto refuses an access log's target bucket until its policy lets the logging service write. S3
  takes the configuration; CDK creates that policy after the bucket that is logged.
- moto writes an access log within the request, so that no stack could delete its log bucket when
  its creation fails. S3 may leave requests of the first hour of logging out, and delivers later
  (API documentation of PutBucketLogging, 2026-11-22). Here the log of a bucket begins when the
  bucket is an hour old.
"""

import json
from datetime import datetime, timedelta
from typing import Any

from moto.iam.access_control import IAMPolicy, PermissionResult
from moto.s3.models import FakeBucket, S3Backend

from slipway.embedded_aws.iam.permissions import listed

_LOGGING_BEGINS_AFTER = timedelta(hours=1)
_log_at_once = S3Backend.log_incoming_request


def patch() -> None:
    """Makes moto's buckets accept what S3 accepts."""
    FakeBucket.get_permission = _permission
    FakeBucket._log_permissions_enabled_policy = staticmethod(_logging_is_permitted)
    S3Backend.log_incoming_request = _log_later


def _permission(bucket: Any, action: str, resource: str) -> Any:
    if bucket.policy is None:
        return PermissionResult.NEUTRAL
    policy = json.loads(bucket.policy.decode())
    statements = listed(policy.get("Statement", []))
    unconditional = [statement for statement in statements if not statement.get("Condition")]
    enforced = IAMPolicy(json.dumps({**policy, "Statement": unconditional}))
    return enforced.is_action_permitted(action, resource)


def _log_later(backend: Any, request: Any, bucket_name: str) -> None:
    bucket = backend.buckets.get(bucket_name)
    if bucket is None:
        return
    age = datetime.now(bucket.creation_date.tzinfo) - bucket.creation_date
    if age >= _LOGGING_BEGINS_AFTER:
        _log_at_once(backend, request, bucket_name)


def _logging_is_permitted(**_: Any) -> bool:
    return True
