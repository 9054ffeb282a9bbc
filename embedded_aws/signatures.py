"""The signature of a request (SigV4): whether its sender has the secret of the access key.

The secret of the embedded AWS's own key is made at each start, and only its owner can read it.
The keys of users and of assumed roles are moto's. No other key is taken.
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html
"""

from __future__ import annotations

import hmac
import io
import itertools
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit
from xml.sax.saxutils import escape

from botocore.utils import normalize_url_path
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from slipway.embedded_aws.identity import ACCESS_KEY_ID, ACCOUNT_ID

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<credential>[^,\s]+),\s*SignedHeaders=(?P<headers>[^,\s]+),"
    r"\s*Signature=(?P<signature>[0-9a-f]+)"
)
_CREDENTIAL: Final = re.compile(
    r"(?P<key>[^/]+)/(?P<scope>\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request)"
)
# The parts of a signature -> the parameters of a presigned address, after `X-Amz-`.
_PRESIGNED: Final = {
    "credential": "Credential",
    "headers": "SignedHeaders",
    "signature": "Signature",
    "time": "Date",
    "expires": "Expires",
}
# AWS takes a week at most.
_EXPIRES: Final = re.compile(r"[0-9]{1,6}")
_PARTITION: Final = "aws"
# Characters of a path or a query that stay as they are in what is signed.
_UNRESERVED: Final = "-_.~"
# WSGI names these two headers without a prefix.
_WITHOUT_PREFIX: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")
_UNSIGNED: Final = "UNSIGNED-PAYLOAD"
_DIGEST: Final = "X-Amz-Content-SHA256"
# SDKs sign about ten. Each costs its value's length once more.
_MAX_SIGNED_HEADERS: Final = 64
# How old or early the time of a header's signature may be, as in AWS.
_MAX_SKEW_SECONDS: Final = 900
# Read before the signature is compared, because its digest is signed and nothing says it.
_MAX_UNVERIFIED_BYTES: Final = 32 * 1024**2
_NEW_KEYS: Final = (
    "The embedded AWS makes a new key at each start: set the variables of `slipway local env`."
)


@dataclass(frozen=True)
class WrongSignature:
    """AWS's error for a request that the owner of its key did not sign, in AWS's words.

    Its code differs between S3, the other services that answer in XML, and those that answer in
    JSON.
    """

    s3: str
    query: str
    json: str
    message: str


_MISSING: Final = WrongSignature(
    "AccessDenied",
    "MissingAuthenticationToken",
    "MissingAuthenticationTokenException",
    "Missing Authentication Token.",
)
# As buckets made after June 2020 answer; boto3 presigns so unless `signature_version` is `s3v4`.
_OLD: Final = WrongSignature(
    "InvalidRequest",
    "IncompleteSignature",
    "IncompleteSignatureException",
    "The authorization mechanism you have provided is not supported. Please use AWS4-HMAC-SHA256.",
)
_UNKNOWN_KEY: Final = WrongSignature(
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "UnrecognizedClientException",
    "The security token included in the request is invalid.",
)
_MISMATCH: Final = WrongSignature(
    "SignatureDoesNotMatch",
    "SignatureDoesNotMatch",
    "InvalidSignatureException",
    "The request signature we calculated does not match the signature you provided. Check your key "
    "and signing method.",
)
_EXPIRED: Final = WrongSignature(
    "AccessDenied", "RequestExpired", "RequestExpired", "Request has expired."
)
_TOO_LARGE: Final = WrongSignature(
    "EntityTooLarge",
    "RequestEntityTooLarge",
    "RequestEntityTooLargeException",
    f"A body of more than {_MAX_UNVERIFIED_BYTES} bytes needs the header {_DIGEST}.",
)


@dataclass(frozen=True)
class Signature:
    """What a request says of its signature, in the header Authorization or in its address.

    Attributes:
        key: the access key id.
        scope: the credential scope: date, region, service and a last word.
        headers: the names of the signed headers.
        time: when it was signed, such as `20260101T000000Z`.
        expires_seconds: how long a presigned address is valid; None where a header signs.
    """

    key: str
    scope: str
    region: str
    service: str
    headers: tuple[str, ...]
    hex: str
    time: str
    expires_seconds: int | None = None

    def is_expired(self, now_seconds: float) -> bool:
        """Returns whether the signature is not valid at a time, in seconds since the epoch."""
        try:
            signed_at = datetime.strptime(self.time, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError:
            return True
        age_seconds = now_seconds - signed_at.timestamp()
        longest = _MAX_SKEW_SECONDS if self.expires_seconds is None else self.expires_seconds
        return not -_MAX_SKEW_SECONDS <= age_seconds <= longest

    def covers(self, environ: WSGIEnvironment) -> bool:
        """Returns whether all of a request is signed that AWS asks for.

        That is the server's name and every header of AWS's own, but the body's digest, which is
        signed anyway. Names are sorted, so that none is there twice.
        """
        named = {name.upper().replace("-", "_") for name in self.headers}
        own = {
            name.removeprefix("HTTP_")
            for name in environ
            if name.startswith("HTTP_X_AMZ_") or name == "HTTP_HOST"
        }
        is_sorted = all(one < other for one, other in itertools.pairwise(self.headers))
        return (
            is_sorted
            and len(self.headers) <= _MAX_SIGNED_HEADERS
            and own - {"X_AMZ_CONTENT_SHA256"} <= named
        )


def read_signature(environ: WSGIEnvironment) -> Signature | None:
    """Returns the signature of a request; None where it has none."""
    found = _AUTHORIZATION.fullmatch(environ.get("HTTP_AUTHORIZATION", ""))
    if "HTTP_AUTHORIZATION" in environ and found is None:
        return None
    if found is not None:
        said = {**found.groupdict(), "time": environ.get("HTTP_X_AMZ_DATE", ""), "expires": ""}
    else:
        query = dict(parse_qsl(environ.get("QUERY_STRING", "")))
        said = {name: query.get(f"X-Amz-{parameter}", "") for name, parameter in _PRESIGNED.items()}
    scope = _CREDENTIAL.fullmatch(said["credential"])
    # A presigned address says how long it is valid.
    if scope is None or (found is None and not _EXPIRES.fullmatch(said["expires"])):
        return None
    return Signature(
        **scope.groupdict(),
        headers=tuple(said["headers"].split(";")),
        hex=said["signature"],
        time=said["time"],
        expires_seconds=int(said["expires"]) if found is None else None,
    )


def verify(
    environ: WSGIEnvironment, secret_access_key: str, account_seconds: float
) -> Signature | WrongSignature:
    """Returns a request's signature, or AWS's error where its sender has not the key's secret.

    It is valid by the machine's clock, or by the account's (in seconds since the epoch): some SDKs
    sign with the time that answers tell. The secret is that of the embedded AWS's own key. The body
    is read and put back where its digest is signed: S3's front compares the digests that requests
    to S3 name.
    """
    signature = read_signature(environ)
    if signature is None:
        return _OLD if "AWSAccessKeyId=" in environ.get("QUERY_STRING", "") else _MISSING
    secret = _find_secret(signature.key, secret_access_key)
    if secret is None:
        return _UNKNOWN_KEY
    if not signature.covers(environ):
        return _MISMATCH
    digest = environ.get("HTTP_X_AMZ_CONTENT_SHA256")
    if digest is None and signature.service == "s3":
        digest = _UNSIGNED
    elif digest is None:
        if _body_bytes(environ) > _MAX_UNVERIFIED_BYTES:
            return _TOO_LARGE
        digest = _body_digest(environ)
    key = f"AWS4{secret}".encode()
    for part in signature.scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    try:
        canonical = sha256(_canonical_request(environ, signature, digest)).hexdigest()
    except UnicodeEncodeError:
        return _MISMATCH
    signed = "\n".join(["AWS4-HMAC-SHA256", signature.time, signature.scope, canonical])
    expected = hmac.new(key, signed.encode(), "sha256").hexdigest()
    if not hmac.compare_digest(expected.encode(), signature.hex.encode()):
        return _MISMATCH
    if all(signature.is_expired(now) for now in (time.time(), account_seconds)):
        return _EXPIRED
    if signature.service != "s3" and digest not in (_UNSIGNED, _body_digest(environ)):
        return _MISMATCH
    # Nothing behind this reads another service, region or key out of the request.
    environ["HTTP_AUTHORIZATION"] = (
        f"AWS4-HMAC-SHA256 Credential={signature.key}/{signature.scope}, "
        f"SignedHeaders={';'.join(signature.headers)}, Signature={signature.hex}"
    )
    return signature


def refuse(
    wrong: WrongSignature, environ: WSGIEnvironment, start_response: StartResponse
) -> Iterable[bytes]:
    """Answers a request as its service refuses it."""
    signature = read_signature(environ)
    message = f"{wrong.message} {_NEW_KEYS}"
    told = f"<Message>{escape(message)}</Message>"
    headers = [("Content-Type", "application/xml")]
    if "x-www-form-urlencoded" in environ.get("CONTENT_TYPE", ""):
        error = f"<Error><Type>Sender</Type><Code>{wrong.query}</Code>{told}</Error>"
        body = f"<ErrorResponse>{error}</ErrorResponse>"
    elif signature.service == "s3" if signature else "HTTP_X_AMZ_TARGET" not in environ:
        body = f"<Error><Code>{wrong.s3}</Code>{told}</Error>"
    else:
        body = json.dumps({"__type": wrong.json, "message": message})
        headers = [("Content-Type", "application/json"), ("x-amzn-ErrorType", wrong.json)]
    start_response("403 Forbidden", [*headers, ("Content-Length", str(len(body)))])
    return [body.encode()]


def _find_secret(access_key_id: str, own: str) -> str | None:
    """Returns the secret of a key; None where nobody gave it out."""
    if access_key_id == ACCESS_KEY_ID:
        return own
    users = iam_backends[ACCOUNT_ID][_PARTITION].users.values()
    keys = [key for user in users for key in user.access_keys]
    keys += sts_backends[ACCOUNT_ID][_PARTITION].assumed_roles
    # A role's key has no status.
    found = (key for key in keys if getattr(key, "status", "Active") == "Active")
    return next(
        (key.secret_access_key for key in found if key.access_key_id == access_key_id), None
    )


def _body_bytes(environ: WSGIEnvironment) -> int:
    length = environ.get("CONTENT_LENGTH") or "0"
    return int(length) if length.isdecimal() else 0


def _body_digest(environ: WSGIEnvironment) -> str:
    """Reads the body, puts it back, and returns its digest."""
    body = environ["wsgi.input"].read(_body_bytes(environ))
    environ["wsgi.input"] = io.BytesIO(body)
    return sha256(body).hexdigest()


def _canonical_request(environ: WSGIEnvironment, signature: Signature, digest: str) -> bytes:
    url = urlsplit(environ["REQUEST_URI"])
    if signature.service == "s3":
        path = quote(unquote(url.path), safe=f"/{_UNRESERVED}")
    else:
        # Every other service signs its path as it is sent, escaped once more.
        path = quote(normalize_url_path(url.path), safe=f"/{_UNRESERVED}")
    pairs = [pair.partition("=") for pair in url.query.split("&") if pair]
    query = sorted(
        (quote(unquote(name), safe=_UNRESERVED), quote(unquote(value), safe=_UNRESERVED))
        for name, _, value in pairs
        if name != "X-Amz-Signature"
    )
    lines = [
        environ["REQUEST_METHOD"],
        path,
        "&".join(f"{name}={value}" for name, value in query),
        *(f"{name}:{_header(environ, name)}" for name in signature.headers),
        "",
        ";".join(signature.headers),
        digest,
    ]
    # WSGI gives the bytes of a header as the characters of this encoding.
    return "\n".join(lines).encode("latin-1")


def _header(environ: WSGIEnvironment, name: str) -> str:
    variable = name.upper().replace("-", "_")
    key = variable if variable in _WITHOUT_PREFIX else f"HTTP_{variable}"
    return " ".join(environ.get(key, "").split())
