"""The digests that a request states of its body."""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from _typeshed.wsgi import WSGIEnvironment


_MD5_BYTES: Final = 16
# Other values of the header say that the body is not signed, or signed in parts.
_SHA256_CHARACTERS: Final = 64


@dataclass(frozen=True)
class Refusal:
    """An error of S3; https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html.

    Attributes:
        code: S3's name of the error.
        message: S3's words.
        status: of HTTP.
    """

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


def find_wrong_digest(environ: WSGIEnvironment, body: bytes) -> Refusal | None:
    """Returns S3's error where a digest in a header is not the body's.

    Checksums that follow a body in parts are not checked.
    """
    md5 = environ.get("HTTP_CONTENT_MD5")
    if md5 is not None:
        stated = _decode(md5)
        if stated is None or len(stated) != _MD5_BYTES:
            return Refusal("InvalidDigest", "The Content-MD5 you specified was invalid.")
        if stated != hashlib.md5(body, usedforsecurity=False).digest():
            return Refusal(
                "BadDigest",
                "The Content-MD5 you specified did not match what we received.",
            )
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
            return Refusal(
                "InvalidRequest",
                f"Value for x-amz-checksum-{name.lower()} header is invalid.",
            )
        if stated != computed:
            return Refusal(
                "BadDigest",
                f"The {name} you specified did not match the calculated checksum.",
            )
    return None


def _decode(value: str) -> bytes | None:
    try:
        return base64.b64decode(value, validate=True)
    except binascii.Error:
        return None
