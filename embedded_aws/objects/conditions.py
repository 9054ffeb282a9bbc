"""Conditional writes, and bucket policies that demand them, as S3 has them.

moto enforces no statement with a condition, and no condition of CopyObject. Only a `Deny` for
everybody is evaluated here: anything else leaves the decision to the caller's own policies, which
are not evaluated. The words are S3's, read 2026-11-28:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from moto.s3.models import s3_backends

from slipway.embedded_aws.iam.permissions import is_denied
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.objects.digests import Refusal

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_FORBIDDEN, _CONFLICT = "403 Forbidden", "409 Conflict"
_NOT_FOUND, _FAILED = "404 Not Found", "412 Precondition Failed"
_ACTION = "s3:PutObject"
# Parameters of other actions than writing content, such as tagging.
_PARTS = {"partNumber", "uploadId", "uploads", "x-id"}


@dataclass(frozen=True)
class Write:
    """A request that writes an object, or a part of one.

    Args:
        creates: whether an object is there afterwards, which is `s3:ObjectCreationOperation`.
    """

    bucket: str
    key: str
    creates: bool
    if_match: str | None
    if_none_match: str | None

    def is_there(self) -> bool:
        """Returns whether an object lies there."""
        return self._found() is not None

    def _found(self) -> Any:
        backend = s3_backends[ACCOUNT_ID]["aws"]
        return backend.get_object(self.bucket, self.key) if self.bucket in backend.buckets else None

    def find_denial(self) -> Refusal | None:
        """Returns S3's error where the bucket's policy denies the write."""
        bucket = s3_backends[ACCOUNT_ID]["aws"].buckets.get(self.bucket)
        if bucket is None or bucket.policy is None:
            return None
        resource = f"arn:aws:s3:::{self.bucket}/{self.key}"
        context = {"s3:objectcreationoperation": str(self.creates).lower()}
        # A port on loopback stands for TLS.
        context["aws:securetransport"] = "true"
        for name, value in (("match", self.if_match), ("none-match", self.if_none_match)):
            if value is not None:
                context[f"s3:if-{name}"] = value
        if not is_denied(json.loads(bucket.policy), _ACTION, resource, context):
            return None
        return Refusal(
            "AccessDenied",
            f"User: arn:aws:iam::{ACCOUNT_ID}:root is not authorized to perform: {_ACTION} on "
            f'resource: "{resource}" with an explicit deny in a resource-based policy',
            _FORBIDDEN,
        )

    def find_conflict(self, *, was_there: bool) -> Refusal | None:
        """Returns S3's error where the write's condition does not hold.

        Args:
            was_there: whether an object was there when the request began.
        """
        if not self.creates:
            return None
        found = self._found()
        failed = "At least one of the pre-conditions you specified did not hold"
        if self.if_none_match is not None:
            if self.if_none_match != "*":
                return Refusal(
                    "NotImplemented",
                    "A header you provided implies functionality that is not implemented",
                    "501 Not Implemented",
                )
            if found is not None:
                return Refusal("PreconditionFailed", failed, _FAILED)
            if was_there:
                return Refusal(
                    "ConditionalRequestConflict",
                    "The conditional request cannot succeed due to a conflicting operation "
                    "against this resource.",
                    _CONFLICT,
                )
        if self.if_match is not None:
            if found is None:
                return Refusal("NoSuchKey", "The specified key does not exist.", _NOT_FOUND)
            if found.etag.strip('"') != self.if_match.strip('"'):
                return Refusal("PreconditionFailed", failed, _FAILED)
        return None


def write_of(environ: WSGIEnvironment) -> Write | None:
    """Returns the write that a request asks for; None if it asks for something else."""
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    bucket, _, key = path.removeprefix("/").partition("/")
    parameters = set(parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    completes = "uploadId" in parameters and environ["REQUEST_METHOD"] == "POST"
    is_part = bool(parameters & {"uploads", "uploadId"}) and not completes
    if not key or environ["REQUEST_METHOD"] not in ("PUT", "POST") or parameters - _PARTS:
        return None
    return Write(
        bucket,
        key,
        not is_part,
        environ.get("HTTP_IF_MATCH"),
        environ.get("HTTP_IF_NONE_MATCH"),
    )
