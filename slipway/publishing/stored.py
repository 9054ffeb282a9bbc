"""Objects in S3: listed, read over broken connections, and compared with a SHA-256.

What was copied in parts has no SHA-256 of the whole in S3. Such an object is read.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import (
    ClientError,
    HTTPClientError,
    IncompleteReadError,
    ResponseStreamingError,
)

from slipway.access import paged
from slipway.publishing.progress import Progress

_CHUNK_BYTES = 1 << 20
# A stream that breaks goes on where it stopped; this often without one new byte, and it is over.
_FRUITLESS_READS = 5
# As many connections as botocore keeps open.
_WORKERS = 10
ANOTHER_VERSION = ("404", "NoSuchKey", "412", "PreconditionFailed")
"""S3's errors where somebody deleted or replaced the object after the listing."""
_BROKEN = (HTTPClientError, IncompleteReadError, ResponseStreamingError)


@dataclass(frozen=True)
class StoredObject:
    """One object of a listing; its path within the artifact follows the prefix.

    Other content has another `etag`. `has_sha256` says whether S3 keeps a SHA-256 of it.
    """

    key: str
    path: str
    size_bytes: int
    etag: str
    has_sha256: bool = False


def listed(client: Any, bucket: str, prefix: str) -> dict[str, StoredObject]:
    """Returns the objects under a prefix, by what follows it."""
    found = (
        StoredObject(
            item["Key"],
            item["Key"].removeprefix(prefix),
            item["Size"],
            item["ETag"],
            "SHA256" in item.get("ChecksumAlgorithm", ()),
        )
        for item in paged(client, "list_objects_v2", "Contents", Bucket=bucket, Prefix=prefix)
    )
    return {item.path: item for item in found}


def seal(objects: Mapping[str, StoredObject]) -> str:
    """Returns a SHA-256 of a listing: it shows each object that was written, added or deleted."""
    rows = sorted((item.path, item.size_bytes, item.etag) for item in objects.values())
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def content(client: Any, bucket: str, item: StoredObject) -> Iterator[bytes]:
    """Yields the bytes of one version of an object, over broken connections."""
    position, fruitless = 0, 0
    while position < item.size_bytes:
        begun_at = position
        try:
            body = client.get_object(
                Bucket=bucket, Key=item.key, IfMatch=item.etag, Range=f"bytes={position}-"
            )["Body"]
            with body:
                for chunk in body.iter_chunks(_CHUNK_BYTES):
                    position += len(chunk)
                    yield chunk
        except _BROKEN:
            fruitless = fruitless + 1 if position == begun_at else 0
            if fruitless == _FRUITLESS_READS:
                raise


def sha256_of(
    client: Any, bucket: str, item: StoredObject, advance: Callable[[int], None] = lambda _: None
) -> str:
    """Returns the SHA-256 of one version of an object, in hexadecimal: every byte is read."""
    digest = hashlib.sha256()
    for chunk in content(client, bucket, item):
        digest.update(chunk)
        advance(len(chunk))
    return digest.hexdigest()


def compare(
    client: Any,
    bucket: str,
    expected: Sequence[tuple[StoredObject, str]],
    progress: Progress,
    *,
    reads: bool,
) -> set[StoredObject]:
    """Returns the objects whose content has the SHA-256 that is expected.

    It is in hexadecimal. With `reads`, every byte is read, also where S3 has a SHA-256.
    """
    if not expected:
        return set()
    progress.start(sum(item.size_bytes for item, _ in expected), "checking")

    def is_right(item: StoredObject, sha256: str) -> bool:
        try:
            if not reads and item.has_sha256 and _is_kept(client, bucket, item, sha256):
                return True
            return sha256_of(client, bucket, item) == sha256
        except ClientError as error:
            if error.response["Error"]["Code"] not in ANOTHER_VERSION:
                raise
            return False

    right = set()
    with ThreadPoolExecutor(_WORKERS) as pool:
        futures = [(item, pool.submit(is_right, item, sha256)) for item, sha256 in expected]
        try:
            for item, future in futures:
                if future.result():
                    right.add(item)
                progress.advance(item.size_bytes)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return right


def _is_kept(client: Any, bucket: str, item: StoredObject, sha256: str) -> bool:
    """Returns whether S3 keeps this SHA-256, or the hash of it where an upload had one part."""
    found = client.head_object(
        Bucket=bucket, Key=item.key, IfMatch=item.etag, ChecksumMode="ENABLED"
    )
    # Behind a hyphen is the number of parts.
    kept = found.get("ChecksumSHA256", "").partition("-")[0]
    of_one_part = hashlib.sha256(bytes.fromhex(sha256)).hexdigest()
    return kept in (in_base64(sha256), in_base64(of_one_part))


def in_base64(sha256: str) -> str:
    """Returns a SHA-256 in hexadecimal as S3 writes it."""
    return base64.b64encode(bytes.fromhex(sha256)).decode()
