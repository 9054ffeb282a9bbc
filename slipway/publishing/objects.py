"""Files that lie in S3 already: hashed as they stream by, then copied from S3 to S3.

An object's ETag is no hash of what is in it, so each is read once. The content is not kept. The
copy asks S3 for the very object that was read, by its ETag, and fails if somebody replaced it.
"""

from collections.abc import Sequence
from typing import Any

from boto3.s3.transfer import TransferConfig
from botocore.exceptions import BotoCoreError, ClientError
from s3transfer.exceptions import S3CopyFailedError

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.file_set import FileSet, Select
from slipway.publishing.manifest import Manifest, ManifestEntry, is_portable
from slipway.publishing.store import ArtifactStore
from slipway.publishing.stored import StoredObject, listed, sha256_of
from slipway.s3_address import S3Address

# S3 copies at most 5 GiB at once, and a part at a time is slow: parts of this size, ten together.
COPY = TransferConfig(multipart_threshold=64 << 20, multipart_chunksize=64 << 20)

# Larger than any text that a job writes, and far smaller than weights.
_LARGEST_TEXT_BYTES = 16 << 20


def objects_under(client: Any, prefix: S3Address) -> list[StoredObject]:
    """Lists the objects under a prefix, in order of path.

    Raises `UserError` if there are none, or some have names that no file can have.
    """
    found = [
        item
        for item in listed(client, prefix.bucket, prefix.key).values()
        # The console's "folder" is an empty object whose key ends with a slash.
        if not (item.key.endswith("/") and item.size_bytes == 0)
    ]
    if not found:
        raise UserError.of(
            Code.NO_FILES,
            f"there are no objects under {prefix.uri}",
            "Put the model's files there.",
        )
    unnameable = [item.key for item in found if not is_portable(item.path)]
    if unnameable:
        fault = f"s3://{prefix.bucket} has an object whose name no file can have: "
        remedy = "Copy it to another key, or remove it."
        raise UserError(
            Problem(Code.UNUSABLE_FILE_NAME, Kind.VALUE, f"{fault}{key!r}", remedy)
            for key in unnameable
        )
    return sorted(found, key=lambda item: item.path)


def publish_objects(
    source_client: Any,
    prefix: S3Address,
    store: ArtifactStore,
    *,
    fields: tuple[str, ...] = (),
    select: Select | None = None,
) -> tuple[Manifest, int]:
    """Publishes the objects under a prefix as one artifact: all, or those that are selected.

    The first run that is stopped while it copies leaves what was copied: the next reads all again,
    and copies what is missing. Returns what the artifact holds, and how many bytes were copied.
    """
    progress = store.progress
    try:
        objects = objects_under(source_client, prefix)
        if select is not None:
            taken = select(file_set(source_client, prefix, objects)).sizes_bytes
            objects = [item for item in objects if item.path in taken]
        progress.start(sum(item.size_bytes for item in objects), "reading")
        manifest = Manifest(
            tuple(
                ManifestEntry(
                    item.path,
                    item.size_bytes,
                    sha256_of(source_client, prefix.bucket, item, progress.advance),
                )
                for item in objects
            )
        )
    except (BotoCoreError, ClientError) as error:
        raise _unreadable(prefix, error, fields) from None
    if store.holds(manifest.digest):
        progress.start(0, "copying")
        return manifest, 0
    lacking = {entry.path for entry in store.missing(manifest.digest, manifest)}
    missing = [item for item in objects if item.path in lacking]
    total = sum(item.size_bytes for item in missing)
    progress.start(total, "copying")
    for item in missing:
        if not _copy(source_client, prefix, item, store, manifest.digest, fields):
            lacking.remove(item.path)
        progress.advance(item.size_bytes)
    store.commit(manifest, sent=lacking)
    return manifest, total


def file_set(client: Any, prefix: S3Address, objects: Sequence[StoredObject]) -> FileSet:
    found = {item.path: item for item in objects}

    def read(path: str, start: int, length: int) -> bytes:
        item, part = found[path], f"bytes={start}-{start + length - 1}"
        answer = client.get_object(
            Bucket=prefix.bucket, Key=item.key, IfMatch=item.etag, Range=part
        )
        with answer["Body"] as body:
            return bytes(body.read())

    sizes_bytes = {path: item.size_bytes for path, item in found.items()}
    return FileSet(prefix.uri.rstrip("/"), sizes_bytes, read)


def read_text(client: Any, prefix: S3Address, path: str) -> str:
    """Returns the text of an object that a job wrote; raises `UserError` if it cannot be read."""
    key = f"{prefix.key}{path}"
    try:
        body: bytes = client.get_object(Bucket=prefix.bucket, Key=key)["Body"].read(
            _LARGEST_TEXT_BYTES
        )
    except (BotoCoreError, ClientError) as error:
        raise UserError.of(
            Code.JOB_OUTPUT,
            f"{prefix.uri}{path} could not be read: {error}",
            "Use credentials that may read the artifact bucket, then run the command again.",
        ) from None
    return body.decode("utf-8", "replace")


def _copy(
    source_client: Any,
    prefix: S3Address,
    item: StoredObject,
    store: ArtifactStore,
    digest: str,
    fields: tuple[str, ...],
) -> bool:
    try:
        return store.copy_in(
            digest,
            item.path,
            source={"Bucket": prefix.bucket, "Key": item.key},
            etag=item.etag,
            source_client=source_client,
            config=COPY,
        )
    except S3CopyFailedError:
        # s3transfer's word for an ETag that no longer matches while it copies in parts.
        raise _replaced(prefix, fields) from None
    except (BotoCoreError, ClientError) as error:
        raise _unreadable(prefix, error, fields) from None


def _replaced(prefix: S3Address, fields: tuple[str, ...]) -> UserError:
    return UserError.of(
        Code.SOURCE_CHANGED,
        f"an object under {prefix.uri} was replaced while it was read",
        "Run the command again once nobody writes there.",
        field=fields,
    )


def _unreadable(
    prefix: S3Address, error: BotoCoreError | ClientError, fields: tuple[str, ...]
) -> UserError:
    said = error.response["Error"]["Code"] if isinstance(error, ClientError) else ""
    if said in ("412", "PreconditionFailed"):
        return _replaced(prefix, fields)
    code, message = Code.SOURCE_CHANGED, f"{prefix.uri} could not be read and copied: {error}"
    remedy = "Run the command again: what was copied is not copied twice."
    if said in ("404", "NoSuchBucket"):
        code, message = Code.SOURCE_UNREADABLE, f"there is no bucket {prefix.bucket}"
        remedy = "Correct the address."
    elif said in ("403", "AccessDenied", "AllAccessDisabled"):
        code, message = Code.SOURCE_UNREADABLE, f"{prefix.uri} may not be read: {said}"
        remedy = "Use credentials that may list that bucket and read its objects, and decrypt them "
        remedy += "where they are encrypted."
    return UserError.of(code, message, remedy, field=fields)
