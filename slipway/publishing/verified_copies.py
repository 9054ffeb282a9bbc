"""Copies a published artifact from one bucket to another.

Each file is compared with its SHA-256 in the manifest before it can be seen in the target. A kill
therefore leaves verified files, and the next run copies only what is missing. The manifest is
written last.

A small file comes through this machine's memory. A larger one is copied from S3 to S3 where the
same credentials may read and write, and S3 itself computes its hash. With two sets of credentials
no request may do both, so larger files stream through this machine as well.

What s5cmd sent is copied into its artifact the same way, within one bucket and whatever its size.
"""

import contextlib
import hashlib
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from s3transfer.exceptions import S3CopyFailedError

from slipway.access import existing
from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.manifest import Manifest, ManifestEntry
from slipway.publishing.objects import COPY
from slipway.publishing.store import STAGED_WORKERS, ArtifactStore
from slipway.publishing.stored import StoredObject, content, in_base64, listed, sha256_of
from slipway.publishing.write_once import lies_there

_WORKERS: Final = 16
# Up to this size, two short requests cost less than the three of a copy within S3.
_SMALL_BYTES: Final = 8 << 20
# https://docs.aws.amazon.com/AmazonS3/latest/API/API_UploadPartCopy.html
_LARGEST_PART_BYTES: Final = 5 << 30
_STREAMED_PART_BYTES: Final = 16 << 20
_MOST_PARTS: Final = 10_000
# One cause can damage every file: more lines would tell no more.
_MOST_REASONS: Final = 10


class SourceStore(ArtifactStore):
    """The bucket that an artifact is copied from; it is only read."""

    @contextlib.contextmanager
    def reached(self) -> Iterator[None]:
        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise _not_read(self.bucket, error) from None


@dataclass(frozen=True)
class CopiedFile:
    entry: ManifestEntry
    found: StoredObject


def copy_artifact(
    digest: str,
    source: SourceStore,
    target: ArtifactStore,
    *,
    within_s3: bool,
    remedy: str,
) -> int:
    """Copies one artifact, unless the target has it; returns how many bytes were copied.

    `within_s3` says whether the target's credentials may also read the source. `remedy` says how a
    missing or damaged artifact is made anew.
    """
    if target.holds(digest):
        target.progress.start(0, "copying")
        return 0
    manifest = _manifest(digest, source, remedy)
    missing = target.missing(digest, manifest)
    files = _found(digest, missing, source, remedy)
    copies = Copies(digest, source, target, within_s3=within_s3)
    total_bytes = sum(entry.size_bytes for entry in missing)
    target.progress.start(total_bytes, "copying")
    if damaged := [f"{each.path} has another SHA-256" for each in copies.run(files)]:
        raise _damaged(digest, damaged, source, remedy)
    target.commit(manifest, sent={entry.path for entry in missing} - copies.there)
    return total_bytes


def _manifest(digest: str, source: SourceStore, remedy: str) -> Manifest:
    key = source.place.manifest_key(digest)
    place = {"Bucket": source.bucket, "Key": key}
    with source.reached():
        found = existing(source.client.get_object, "NoSuchKey", "NoSuchBucket", **place)
        body = None if found is None else found["Body"].read()
    if body is None:
        raise UserError.of(
            Code.NOT_PROMOTABLE,
            f"the lock names the artifact {digest}, and there is no s3://{source.bucket}/{key}",
            remedy,
        )
    if hashlib.sha256(body).hexdigest() != digest:
        raise _damaged(digest, ["manifest.json has another SHA-256"], source, remedy)
    return Manifest.read(body)


def _found(
    digest: str, entries: list[ManifestEntry], source: SourceStore, remedy: str
) -> list[CopiedFile]:
    """Returns the objects of files, each with the ETag that the copy asks for."""
    with source.reached():
        objects = listed(source.client, source.bucket, source.place.files_prefix(digest))
    files, damaged = [], []
    for entry in entries:
        item = objects.get(entry.path)
        if item is None:
            damaged.append(f"{entry.path} is missing")
        elif item.size_bytes != entry.size_bytes:
            damaged.append(
                f"{entry.path} has {item.size_bytes} bytes instead of {entry.size_bytes}"
            )
        else:
            files.append(CopiedFile(entry, item))
    if damaged:
        raise _damaged(digest, damaged, source, remedy)
    return files


class Copies:
    """The copies of one artifact's files, several at a time.

    Within one store, they are copies of its staged files, all from S3 to S3.
    """

    def __init__(
        self, digest: str, source: ArtifactStore, target: ArtifactStore, *, within_s3: bool
    ) -> None:
        self._digest = digest
        self._source = source
        self._target = target
        self._within_s3 = within_s3
        self._is_staged = source is target
        self._lock = threading.Lock()
        # Paths that another publish wrote meanwhile.
        self.there = set[str]()

    def run(self, files: list[CopiedFile]) -> list[ManifestEntry]:
        """Copies files; returns those with another SHA-256, which do not arrive."""
        with ThreadPoolExecutor(STAGED_WORKERS if self._is_staged else _WORKERS) as pool:
            futures = [pool.submit(self._is_copied, each) for each in files]
            try:
                intact = [future.result() for future in futures]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return [each.entry for each, is_intact in zip(files, intact, strict=True) if not is_intact]

    def _is_copied(self, file: CopiedFile) -> bool:
        """Copies a file, unless its content is not the manifest's."""
        size_bytes = file.entry.size_bytes
        # S3 copies no empty part.
        if size_bytes <= (0 if self._is_staged else _SMALL_BYTES):
            return self._put(file)
        if not self._within_s3:
            return self._stream(file)
        if size_bytes <= _LARGEST_PART_BYTES:
            return self._copy_whole(file)
        return self._copy_in_parts(file)

    def _put(self, file: CopiedFile) -> bool:
        body = b"".join(self._content(file.found))
        if hashlib.sha256(body).hexdigest() != file.entry.sha256:
            return False
        with self._target.reached(), self._written(file):
            self._target.client.put_object(
                **self._place(file),
                Body=body,
                ChecksumSHA256=in_base64(file.entry.sha256),
                **self._target.encryption,
            )
        self._advance(len(body))
        return True

    def _stream(self, file: CopiedFile) -> bool:
        """Uploads the parts of a file as they arrive."""
        size_bytes = file.entry.size_bytes
        part_bytes = max(_STREAMED_PART_BYTES, -(-size_bytes // _MOST_PARTS))
        digest = hashlib.sha256()
        with self._upload(file, "CRC32") as upload:
            for body in _parts(self._content(file.found), part_bytes):
                digest.update(body)
                with self._target.reached():
                    upload.add(
                        self._target.client.upload_part(
                            **upload.place, Body=body, ChecksumAlgorithm="CRC32"
                        )
                    )
                self._advance(len(body))
            if digest.hexdigest() != file.entry.sha256:
                return False
            with self._target.reached(), self._written(file):
                upload.complete()
        return True

    def _copy_whole(self, file: CopiedFile) -> bool:
        """Copies a file within S3 as the one part of an upload, whose hash S3 answers."""
        # A staged file may be sent again by another publish meanwhile: what counts is the hash.
        condition = {} if self._is_staged else {"CopySourceIfMatch": file.found.etag}
        with self._upload(file, "SHA256") as upload:
            with _copied(self._source, self._target):
                answer = self._target.client.upload_part_copy(
                    **upload.place,
                    CopySource={"Bucket": self._source.bucket, "Key": file.found.key},
                    **condition,
                )["CopyPartResult"]
            if answer.get("ChecksumSHA256") == in_base64(file.entry.sha256):
                upload.add(answer)
                with self._target.reached(), self._written(file):
                    upload.complete()
                self._advance(file.entry.size_bytes)
                return True
        # A server other than S3 may answer no hash, or another one: then the file is read.
        return not self._is_staged and self._copy_in_parts(file)

    def _copy_in_parts(self, file: CopiedFile) -> bool:
        """Reads a file for its hash, which S3 cannot compute over parts, and copies it."""
        with self._source.reached():
            sha256 = sha256_of(self._source.client, self._source.bucket, file.found)
        if sha256 != file.entry.sha256:
            return False
        with _copied(self._source, self._target):
            is_written = self._target.copy_in(
                self._digest,
                file.entry.path,
                source={"Bucket": self._source.bucket, "Key": file.found.key},
                etag=file.found.etag,
                source_client=self._source.client,
                config=COPY,
            )
        if not is_written:
            self.there.add(file.entry.path)
        self._advance(file.entry.size_bytes)
        return True

    @contextlib.contextmanager
    def _written(self, file: CopiedFile) -> Iterator[None]:
        """Notes a file that lies there already; the commit compares its content."""
        try:
            yield
        except ClientError as error:
            if not lies_there(error):
                raise
            self.there.add(file.entry.path)

    def _content(self, found: StoredObject) -> Iterator[bytes]:
        with self._source.reached():
            yield from content(self._source.client, self._source.bucket, found)

    def _place(self, file: CopiedFile) -> dict[str, str]:
        prefix = self._target.place.files_prefix(self._digest)
        return {"Bucket": self._target.bucket, "Key": f"{prefix}{file.entry.path}"}

    @contextlib.contextmanager
    def _upload(self, file: CopiedFile, checksum: str) -> Iterator["_Upload"]:
        """Opens an upload, which leaves nothing unless it is completed."""
        client, place = self._target.client, self._place(file)
        with self._target.reached():
            answer = client.create_multipart_upload(
                **place, ChecksumAlgorithm=checksum, **self._target.encryption
            )
        upload = _Upload(self._target, {**place, "UploadId": answer["UploadId"]})
        try:
            yield upload
        finally:
            if not upload.is_complete:
                # The bucket deletes unfinished uploads after a while; the problem counts more.
                with contextlib.suppress(BotoCoreError, ClientError):
                    client.abort_multipart_upload(**place, UploadId=answer["UploadId"])

    def _advance(self, size_bytes: int) -> None:
        with self._lock:
            self._target.progress.advance(size_bytes)


class _Upload:
    def __init__(self, target: ArtifactStore, address: Mapping[str, str]) -> None:
        self._target = target
        self._address = dict(address)
        self._parts: list[dict[str, Any]] = []
        self.is_complete = False

    @property
    def place(self) -> dict[str, Any]:
        return {**self._address, "PartNumber": len(self._parts) + 1}

    def add(self, answer: Mapping[str, Any]) -> None:
        told = {
            name: value
            for name, value in answer.items()
            if name == "ETag" or name in ("ChecksumCRC32", "ChecksumSHA256")
        }
        self._parts.append({**told, "PartNumber": len(self._parts) + 1})

    def complete(self) -> None:
        """Makes the object of the parts; raises `ClientError` where one lies there."""
        self._target.client.complete_multipart_upload(
            **self._address, MultipartUpload={"Parts": self._parts}
        )
        self.is_complete = True


def _parts(chunks: Iterator[bytes], part_bytes: int) -> Iterator[bytes]:
    """Joins chunks to parts of a size; the last part may be smaller."""
    part = bytearray()
    for chunk in chunks:
        part += chunk
        while len(part) >= part_bytes:
            yield bytes(part[:part_bytes])
            del part[:part_bytes]
    if part:
        yield bytes(part)


@contextlib.contextmanager
def _copied(source: ArtifactStore, target: ArtifactStore) -> Iterator[None]:
    """Turns errors of a request that reads one place and writes the other into `UserError`."""
    try:
        with source.reached() if source is target else contextlib.nullcontext():
            yield
    except S3CopyFailedError as error:
        # s3transfer's word for an ETag that no longer matches while it copies in parts.
        raise _stopped(source.bucket, error) from None
    except (BotoCoreError, ClientError) as error:
        raise _not_read(f"{source.bucket} (to {target.bucket})", error) from None


def _not_read(bucket: str, error: BotoCoreError | ClientError) -> UserError:
    answer = error.response if isinstance(error, ClientError) else None
    status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode", 0) if answer else 0
    # 412: the object is no longer the one that was listed. S3's own trouble is from 500 on.
    if answer and status < 500 and status != 412:
        code = answer["Error"]["Code"]
        return UserError.of(
            Code.PROMOTION_DENIED,
            f"the artifact in {bucket} may not be read: {code}",
            "Name a profile that may read it with `--from-profile`, or give these credentials the "
            "rights that `slipway iam NAME --env TARGET --from TESTED` prints.",
        )
    return _stopped(bucket, error)


def _stopped(bucket: str, error: Exception) -> UserError:
    return UserError.of(
        Code.PROMOTION_STOPPED,
        f"the artifact in {bucket} could not be copied: {error}",
        "Run the command again: files that arrived are not copied again.",
    )


def _damaged(digest: str, reasons: list[str], source: SourceStore, remedy: str) -> UserError:
    address = f"s3://{source.bucket}/{source.place.artifacts_prefix}{digest}/"
    shown = [f"the artifact {address} is damaged: {each}" for each in reasons[:_MOST_REASONS]]
    if len(reasons) > _MOST_REASONS:
        shown.append(f"{len(reasons) - _MOST_REASONS} more files are damaged")
    remedy = f"Delete it with `aws s3 rm --recursive {address}`. {remedy}"
    return UserError(
        Problem(Code.DAMAGED_ARTIFACT, Kind.STATE, message, remedy) for message in shown
    )
