"""Copies on a condition: S3 copies the very object that was read before, or nothing.

moto knows `x-amz-copy-source-if-none-match` alone.
"""

from typing import Any, Final

from flask import request
from moto.s3.exceptions import PreconditionFailed
from moto.s3.models import S3Backend

_IF_MATCH: Final = "x-amz-copy-source-if-match"
_copy_object = S3Backend.copy_object
_upload_part_copy = S3Backend.upload_part_copy


def follow_copy_conditions() -> None:
    """Makes moto refuse such copies, in the whole process; further calls do nothing."""
    S3Backend.copy_object = _object_copied
    S3Backend.upload_part_copy = _part_copied


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


def _require_match(source: Any) -> None:
    wanted = request.headers.get(_IF_MATCH)
    if wanted is not None and source is not None and wanted.strip('"') != source.etag.strip('"'):
        raise PreconditionFailed(failed_condition=_IF_MATCH)
