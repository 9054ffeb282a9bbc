"""Patches moto's copies: their condition, and the hash that S3 answers to the copy of a part.

S3 copies the very object that was read before, or nothing. moto knows
`x-amz-copy-source-if-none-match` alone, and answers no hash.
"""

import base64
import hashlib
from typing import Any, Final

from flask import request
from moto.s3.exceptions import PreconditionFailed
from moto.s3.models import S3Backend
from moto.s3.responses import S3Response

_IF_MATCH: Final = "x-amz-copy-source-if-match"
_OK: Final = 200
_END: Final = "</CopyPartResult>"
_copy_object = S3Backend.copy_object
_upload_part_copy = S3Backend.upload_part_copy
_answer_part_copy = S3Response.upload_part_copy


def patch() -> None:
    """Makes moto refuse such copies, and answer the hash."""
    S3Backend.copy_object = _object_copied
    S3Backend.upload_part_copy = _part_copied
    S3Response.upload_part_copy = _answered_with_hash


# Any: moto ships no type information.
def _object_copied(backend: Any, src_key: Any, *arguments: Any, **options: Any) -> None:
    _require_match(src_key)
    _copy_object(backend, src_key, *arguments, **options)


def _part_copied(
    backend: Any,
    dest_bucket_name: str,
    multipart_id: str,
    part_id: int,
    src_bucket_name: str,
    src_key_name: str,
    src_version_id: str | None,
    start_byte: int,
    end_byte: int,
) -> Any:
    source = backend.get_object(src_bucket_name, src_key_name, version_id=src_version_id)
    _require_match(source)
    part = _upload_part_copy(
        backend,
        dest_bucket_name,
        multipart_id,
        part_id,
        src_bucket_name,
        src_key_name,
        src_version_id,
        start_byte,
        end_byte,
    )
    # moto looked the source up once more.
    _require_match(backend.get_object(src_bucket_name, src_key_name, version_id=src_version_id))
    return part


def _answered_with_hash(response: Any) -> Any:
    """Adds the part's SHA-256 where the upload was begun with this algorithm."""
    status, headers, body = _answer_part_copy(response)
    parameters = request.args
    uploads = response.backend.get_bucket(response.bucket_name).multiparts
    upload = uploads.get(parameters.get("uploadId"))
    if status == _OK and upload.metadata.get("x-amz-checksum-algorithm") == "SHA256":
        digest = hashlib.sha256(upload.parts[int(parameters["partNumber"])].value).digest()
        text = f"<ChecksumSHA256>{base64.b64encode(digest).decode()}</ChecksumSHA256>"
        body = body.replace(_END, f"{text}{_END}")
        headers["content-length"] = str(len(body))
    return status, headers, body


def _require_match(source: Any) -> None:
    wanted = request.headers.get(_IF_MATCH)
    if wanted is not None and source is not None and wanted.strip('"') != source.etag.strip('"'):
        raise PreconditionFailed(failed_condition=_IF_MATCH)
