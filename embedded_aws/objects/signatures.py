"""The signature of a request: whether its sender has the secret of the access key.

A key that neither this package nor moto gave out is not checked: the embedded AWS takes any key.
"""

from __future__ import annotations

import hmac
import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from moto.iam.models import iam_backends
from moto.sts.models import sts_backends

from embedded_aws.identity import ACCESS_KEY_ID, ACCOUNT_ID, SECRET_ACCESS_KEY
from embedded_aws.objects.refusal import Refusal

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment

_AUTHORIZATION: Final = re.compile(
    r"AWS4-HMAC-SHA256\s+Credential=(?P<key>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)"
    r"/aws4_request,\s*SignedHeaders=(?P<headers>[^,]+),\s*Signature=(?P<signature>\w+)"
)
_PARTITION: Final = "aws"
# Characters of a path or a query that stay as they are in what is signed.
_UNRESERVED: Final = "-_.~"
# WSGI names these two headers without a prefix.
_WITHOUT_PREFIX: Final = ("CONTENT_TYPE", "CONTENT_LENGTH")


def find_wrong_signature(environ: WSGIEnvironment) -> Refusal | None:
    """Returns S3's error where a request was signed with another secret than its key's.

    Presigned URLs, and the signatures of the parts of a body, are not checked.
    """
    found = _AUTHORIZATION.match(environ.get("HTTP_AUTHORIZATION", ""))
    secret = _secret(found["key"]) if found is not None else None
    if found is None or secret is None:
        return None
    signer = S3SigV4Auth(Credentials(found["key"], secret), found["service"], found["region"])
    request = _signed_part(environ, found["headers"].split(";"))
    canonical = signer.canonical_request(request)
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    if hmac.compare_digest(signature, found["signature"]):
        return None
    return Refusal(
        "403 Forbidden",
        "SignatureDoesNotMatch",
        "The request signature we calculated does not match the signature you provided. Check "
        "your key and signing method.",
    )


def _secret(access_key_id: str) -> str | None:
    """Returns the secret of a key; None where nobody gave it out."""
    if access_key_id == ACCESS_KEY_ID:
        return SECRET_ACCESS_KEY
    users = iam_backends[ACCOUNT_ID][_PARTITION].users.values()
    keys = [key for user in users for key in user.access_keys]
    keys += sts_backends[ACCOUNT_ID][_PARTITION].assumed_roles
    return next((key.secret_access_key for key in keys if key.access_key_id == access_key_id), None)


def _signed_part(environ: WSGIEnvironment, signed_headers: list[str]) -> AWSRequest:
    """Returns the part of a request that its signature covers."""
    url = urlsplit(environ["REQUEST_URI"])
    path = quote(unquote(url.path), safe=f"/{_UNRESERVED}")
    pairs = [pair.partition("=") for pair in url.query.split("&") if pair]
    query = "&".join(
        f"{quote(unquote(name), safe=_UNRESERVED)}={quote(unquote(value), safe=_UNRESERVED)}"
        for name, _, value in pairs
    )
    headers = {}
    for name in signed_headers:
        variable = name.upper().replace("-", "_")
        key = variable if variable in _WITHOUT_PREFIX else f"HTTP_{variable}"
        headers[name] = environ.get(key, "")
    request = AWSRequest(
        environ["REQUEST_METHOD"],
        f"http://{environ['HTTP_HOST']}{path}" + (f"?{query}" if query else ""),
        headers,
    )
    request.context["timestamp"] = environ.get("HTTP_X_AMZ_DATE", "")
    return request
