"""S3 as strict as in AWS: moto takes requests that S3 refuses.

Wrong digests, another secret, a write that a bucket policy denies, or a copy of an object that was
replaced meanwhile would otherwise work here and fail in AWS.

moto enforces no statement of a bucket policy with a condition, and no condition of CopyObject. Only
a `Deny` for everybody is evaluated here: anything else leaves the decision to the caller's own
policies, which are not evaluated. The words are S3's, read 2026-11-28:
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html and
https://docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes-enforce.html
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import io
import json
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs
from xml.sax.saxutils import escape

from moto.s3.models import s3_backends

from slipway.embedded_aws.iam.permissions import is_denied
from slipway.embedded_aws.identity import ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

_MD5_BYTES: Final = 16
# Other values of the header say that the body is not signed, or signed in parts.
_SHA256_CHARACTERS: Final = 64
_FORBIDDEN, _CONFLICT = "403 Forbidden", "409 Conflict"
_NOT_FOUND, _FAILED = "404 Not Found", "412 Precondition Failed"
_ACTION = "s3:PutObject"
# Parameters of other actions than writing content, such as tagging.
_PARTS = {"partNumber", "uploadId", "uploads", "x-id"}


@dataclass(frozen=True)
class Refusal:
    """An error of S3; https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html."""

    code: str
    message: str
    status: str = "400 Bad Request"


def _crc32(body: bytes) -> bytes:
    return zlib.crc32(body).to_bytes(4, "big")


# Names of the headers' ends. Python has no CRC32C and no CRC64NVME: they are not checked.
_CHECKSUMS: Final[Mapping[str, Callable[[bytes], bytes]]] = {
    "CRC32": _crc32,
    "SHA1": lambda body: hashlib.sha1(body, usedforsecurity=False).digest(),
    "SHA256": lambda body: hashlib.sha256(body).digest(),
}


def _find_wrong_digest(environ: WSGIEnvironment, body: bytes) -> Refusal | None:
    """Returns S3's error where a digest in a header is not the body's.

    Checksums that follow a body in parts are not checked.
    """
    md5 = environ.get("HTTP_CONTENT_MD5")
    if md5 is not None:
        stated = _decode(md5)
        if stated is None or len(stated) != _MD5_BYTES:
            return Refusal("InvalidDigest", "The Content-MD5 you specified was invalid.")
        if stated != hashlib.md5(body, usedforsecurity=False).digest():
            message = "The Content-MD5 you specified did not match what we received."
            return Refusal("BadDigest", message)
    sha256 = environ.get("HTTP_X_AMZ_CONTENT_SHA256", "")
    if len(sha256) == _SHA256_CHARACTERS and sha256.lower() != hashlib.sha256(body).hexdigest():
        return Refusal(
            "XAmzContentSHA256Mismatch",
            "The provided 'x-amz-content-sha256' header does not match what was computed.",
        )
    if environ["REQUEST_METHOD"] == "POST" and "uploadId=" in environ.get("QUERY_STRING", ""):
        # This completes an upload: the checksum is of the whole object.
        return None
    for name, digest in _CHECKSUMS.items():
        header = environ.get(f"HTTP_X_AMZ_CHECKSUM_{name}")
        if header is None:
            continue
        stated, computed = _decode(header), digest(body)
        if stated is None or len(stated) != len(computed):
            message = f"Value for x-amz-checksum-{name.lower()} header is invalid."
            return Refusal("InvalidRequest", message)
        if stated != computed:
            message = f"The {name} you specified did not match the calculated checksum."
            return Refusal("BadDigest", message)
    return None


def _decode(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return None


@dataclass(frozen=True)
class Write:
    """A request that writes an object, or a part of one."""

    bucket: str
    key: str
    # Whether an object is there afterwards, which is `s3:ObjectCreationOperation`.
    creates: bool
    if_match: str | None
    if_none_match: str | None

    def is_there(self) -> bool:
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

        An object may have been there when the request began, and be gone now.
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


def _write_of(environ: WSGIEnvironment) -> Write | None:
    """Returns the write that a request asks for; None if it asks for something else."""
    path = environ["PATH_INFO"].encode("latin-1").decode("utf-8", "replace")
    bucket, _, key = path.removeprefix("/").partition("/")
    parameters = set(parse_qs(environ.get("QUERY_STRING", ""), keep_blank_values=True))
    completes = "uploadId" in parameters and environ["REQUEST_METHOD"] == "POST"
    is_part = bool(parameters & {"uploads", "uploadId"}) and not completes
    if not key or environ["REQUEST_METHOD"] not in ("PUT", "POST") or parameters - _PARTS:
        return None
    conditions = (environ.get("HTTP_IF_MATCH"), environ.get("HTTP_IF_NONE_MATCH"))
    return Write(bucket, key, not is_part, *conditions)


_INCOMPLETE = Refusal(
    "IncompleteBody",
    "You did not provide the number of bytes specified by the Content-Length HTTP header",
)


class ObjectFront:
    """S3's front: checks the digests and the conditions of a request."""

    def __init__(self, storage: WSGIApplication) -> None:
        self._storage = storage
        # One request at a time: moto fails where an object is replaced while another request
        # reads it or takes its digest.
        self._lock = threading.Lock()

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        refusal, write = None, _write_of(environ)
        with self._lock:
            was_there = write is not None and write.is_there()
        if environ.get("CONTENT_LENGTH"):
            # Read once, since moto keeps the whole body in memory as well.
            length = int(environ["CONTENT_LENGTH"])
            body = environ["wsgi.input"].read(length)
            environ["wsgi.input"] = io.BytesIO(body)
            refusal = _INCOMPLETE if len(body) < length else _find_wrong_digest(environ, body)
        if refusal is None and write is not None:
            refusal = write.find_denial()
        if refusal is None:
            with self._lock:
                refusal = write.find_conflict(was_there=was_there) if write is not None else None
                if refusal is None:
                    return self._storage(environ, start_response)
        return _refuse(refusal, environ, start_response)


def _refuse(
    refusal: Refusal, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{refusal.code}</Code><Message>{escape(refusal.message)}</Message>"
        f"<RequestId>{environ['slipway.request_id']}</RequestId></Error>"
    ).encode()
    start_response(
        refusal.status,
        [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))],
    )
    return [body]
