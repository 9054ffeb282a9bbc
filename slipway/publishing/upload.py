"""Uploads files of this machine: many at once, large ones in parts, each only where nothing lies.

s5cmd, which is faster with many cores, cannot send `If-None-Match` (peak/s5cmd issue 752, open on
2026-11-28; its SDK, aws-sdk-go 1.44.298, has no such member). The bucket refuses its writes.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from boto3.s3.transfer import ProgressCallbackInvoker, TransferConfig, create_transfer_manager
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from slipway.access import Access, credentials_problem
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.store import ArtifactStore
from slipway.publishing.stored import in_base64
from slipway.publishing.write_once import lies_there

_MEBIBYTE: Final = 1 << 20
# Python has no use for more: one process fills some gigabits a second.
_CONNECTIONS: Final = 32
# A file below this size has its SHA-256 in the request, so S3 takes the hashed content only.
_PARTS: Final = TransferConfig(
    multipart_threshold=64 * _MEBIBYTE,
    multipart_chunksize=64 * _MEBIBYTE,
    max_concurrency=_CONNECTIONS,
)
# Whatever is larger is read as it is sent, and asks S3 first whether it takes it.
_READ_WHOLE_BYTES: Final = _MEBIBYTE
# Where the network is gone every file fails, for one reason: more lines would tell no more.
_MOST_REASONS: Final = 10
# S3's word for content without the SHA-256 of the request: the caller finds which file changed.
_CHANGED: Final = "BadDigest"

UPLOADS: Final = Config(max_pool_connections=2 * _CONNECTIONS)
"""Of the S3 client of an upload."""


@dataclass(frozen=True)
class Upload:
    """One file, and its path within the artifact."""

    source: Path
    path: str
    size_bytes: int
    sha256: str


def upload(
    uploads: Sequence[Upload],
    *,
    digest: str,
    store: ArtifactStore,
    access: Access,
    advance: Callable[[int], None],
    sent: set[str],
) -> None:
    """Copies files into an artifact.

    Args:
        uploads: the files.
        digest: the artifact.
        store: receives the files.
        access: where a failure may lie in its credentials.
        advance: told how many bytes have arrived; a part that is sent again takes some back.
        sent: receives the paths that this run wrote, also if it fails. Any other path was there
            by then, or the file changed meanwhile.

    Raises:
        UserError: some file did not arrive. Or the credentials could not be renewed.
    """
    prefix, lock = store.place.files_prefix(digest), threading.Lock()
    manager: Any = create_transfer_manager(store.client, _PARTS)
    pool = ThreadPoolExecutor(_CONNECTIONS)

    def count(bytes_transferred: int) -> None:
        with lock:
            advance(bytes_transferred)

    def send(item: Upload) -> None:
        whole = {**store.encryption, "ChecksumSHA256": in_base64(item.sha256)}
        place = (store.bucket, f"{prefix}{item.path}")
        if item.size_bytes <= _READ_WHOLE_BYTES:
            body = item.source.read_bytes()
            store.client.put_object(Bucket=place[0], Key=place[1], Body=body, **whole)
            return
        is_whole = item.size_bytes < _PARTS.multipart_threshold
        arguments = whole if is_whole else store.encryption
        told = [ProgressCallbackInvoker(count)]
        manager.upload(str(item.source), *place, arguments, told).result()

    errors = list[Exception]()
    # An error in this block cancels what is on its way.
    with manager:
        try:
            # The large ones first, so that no one is left over.
            ordered = sorted(uploads, key=lambda item: -item.size_bytes)
            futures = {pool.submit(send, item): item for item in ordered}
            for future in as_completed(futures):
                item, error = futures[future], future.exception()
                if error is None:
                    sent.add(item.path)
                    if item.size_bytes <= _READ_WHOLE_BYTES:
                        count(item.size_bytes)
                elif not isinstance(error, Exception):
                    raise error
                elif not (isinstance(error, ClientError) and _is_expected(error)):
                    errors.append(error)
                    if len(errors) == _MOST_REASONS:
                        break
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        if errors:
            raise _problems(errors, access) from None


def _is_expected(error: ClientError) -> bool:
    return lies_there(error) or error.response["Error"]["Code"] == _CHANGED


def _problems(errors: Sequence[Exception], access: Access) -> UserError:
    try:
        access.credentials()
    # The user's own programs, files and networks are behind this call.
    except Exception as error:
        # Every file that was left failed for this one reason.
        return UserError(
            [
                credentials_problem(
                    "the credentials could not be renewed during the upload",
                    error,
                    "Log in again, then run the command again: what has arrived is not sent twice.",
                )
            ]
        )
    for failure in errors:
        if not isinstance(failure, BotoCoreError | ClientError | OSError):
            raise failure
    return UserError(
        Problem(
            Code.UPLOAD_FAILED,
            Kind.STATE,
            f"an upload failed: {failure}",
            "Run the command again: what has arrived is not sent twice.",
        )
        for failure in errors
    )
