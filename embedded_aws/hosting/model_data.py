"""Fills a container's model directory from S3, as SageMaker fills /opt/ml/model.

Objects under an uncompressed prefix keep the part of their key after the prefix as path; an archive
is extracted. The result is read-only. All data comes from the embedded AWS's own S3.
"""

import shutil
import stat
import tarfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

from embedded_aws.hosting.role_access import RoleAccess

_CHUNK_BYTES = 1 << 20


class ModelDataError(Exception):
    """The model data cannot be downloaded; the message says why."""


@dataclass(frozen=True)
class ModelSource:
    """The place of a container's model data.

    Attributes:
        uri: as the caller wrote it.
        bucket: S3 bucket.
        key: object key, or prefix with its final slash.
        is_prefix: whether every object under `key` is meant.
        is_archive: whether the object is a gzip-compressed tar.
    """

    uri: str
    bucket: str
    key: str
    is_prefix: bool
    is_archive: bool

    @classmethod
    def of(cls, container: Mapping[str, Any]) -> "ModelSource | None":
        """Returns the source of a ContainerDefinition; None if it has no model data."""
        if container.get("ModelDataUrl"):
            return cls._parse(container["ModelDataUrl"], is_prefix=False, is_archive=True)
        source = container.get("ModelDataSource", {}).get("S3DataSource")
        if source is None:
            return None
        return cls._parse(
            source["S3Uri"],
            is_prefix=source["S3DataType"] == "S3Prefix",
            is_archive=source["CompressionType"] == "Gzip",
        )

    @classmethod
    def _parse(cls, uri: str, *, is_prefix: bool, is_archive: bool) -> "ModelSource":
        parts = urlsplit(uri)
        if parts.scheme == "s3":
            bucket, key = parts.netloc, parts.path.removeprefix("/")
        else:
            # https://s3.REGION.amazonaws.com/BUCKET/KEY or https://BUCKET.s3.REGION...
            host, path = parts.netloc, parts.path.removeprefix("/")
            if host.startswith("s3"):
                bucket, _, key = path.partition("/")
            else:
                bucket, key = host.partition(".")[0], path
        return cls(uri, bucket, key, is_prefix, is_archive)

    def require_access(self, access: RoleAccess) -> None:
        """Checks that a role may list the model data, and read one object of it.

        Raises:
            ClientError: the role may not.
        """
        key: str | None = self.key
        if self.is_prefix:
            key = next(access.keys(self.bucket, self.key), None)
        if key is not None:
            access.require_readable(self.bucket, key)

    def exists(self, s3: Any) -> bool:
        """Returns whether there is anything to download."""
        try:
            if not self.is_prefix:
                s3.head_object(Bucket=self.bucket, Key=self.key)
                return True
            listing = s3.list_objects_v2(Bucket=self.bucket, Prefix=self.key, MaxKeys=1)
        except ClientError:
            return False
        return bool(listing.get("Contents"))


def download(
    source: ModelSource, access: RoleAccess, directory: Path, *, timeout_seconds: float
) -> None:
    """Fills the directory and makes it read-only.

    Args:
        source: the model data.
        access: S3 with the permissions of the execution role.
        directory: an existing, empty directory.
        timeout_seconds: for the whole download and extraction.

    Raises:
        ModelDataError: the data does not exist, is of the wrong kind, or takes too long.
    """
    deadline = time.monotonic() + timeout_seconds
    try:
        if source.is_archive:
            archive = directory.with_name(directory.name + ".tar.gz")
            _fetch(access, source.bucket, source.key, archive, deadline)
            _extract(archive, directory, deadline)
            archive.unlink()
        elif source.is_prefix:
            download_prefix(access, source.bucket, source.key, directory, deadline)
        else:
            target = directory / PurePosixPath(source.key).name
            _fetch(access, source.bucket, source.key, target, deadline)
    except TimeoutError:
        raise ModelDataError(
            f'Downloading the model data from "{source.uri}" took longer than {timeout_seconds:g} '
            "seconds. Raise ModelDataDownloadTimeoutInSeconds or make the model data smaller."
        ) from None
    except (ClientError, tarfile.TarError, OSError) as error:
        raise ModelDataError(
            f'Failed to download model data from URL: "{source.uri}". Please ensure that there is '
            "an object located at the URL and that the role passed to CreateModel has permissions "
            f"to download the object. ({error})"
        ) from error
    _set_modes(directory, directory_mode=0o555, file_mode=0o444)


def download_prefix(
    access: RoleAccess, bucket: str, prefix: str, directory: Path, deadline: float
) -> None:
    """Fills a directory with every object under a prefix; the path is the key after the prefix.

    Args:
        access: S3 with the permissions of the execution role.
        bucket: the objects' bucket.
        prefix: with its final slash.
        directory: an existing, empty directory.
        deadline: a time of `time.monotonic`.

    Raises:
        ClientError, OSError, TimeoutError, ModelDataError: the download fails, or takes too long.
    """
    for key in access.keys(bucket, prefix):
        target = directory / _relative(key.removeprefix(prefix))
        target.parent.mkdir(parents=True, exist_ok=True)
        _fetch(access, bucket, key, target, deadline)


def remove(directory: Path) -> None:
    """Deletes a read-only model directory."""
    if directory.exists():
        _set_modes(directory, directory_mode=0o755, file_mode=0o644)
        shutil.rmtree(directory)


def _relative(key: str) -> PurePosixPath:
    path = PurePosixPath(key)
    if path.is_absolute() or ".." in path.parts:
        raise ModelDataError(f"the object key {key!r} leads out of the model directory")
    return path


def _fetch(access: RoleAccess, bucket: str, key: str, target: Path, deadline: float) -> None:
    body = access.read(bucket, key)
    with body, target.open("wb") as file:
        for chunk in body.iter_chunks(_CHUNK_BYTES):
            _check(deadline)
            file.write(chunk)
    _check(deadline)


def _extract(archive: Path, directory: Path, deadline: float) -> None:
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            _check(deadline)
            # The data filter refuses paths that leave the directory, devices and odd modes.
            tar.extract(member, directory, filter="data")


def _check(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise TimeoutError


def _set_modes(directory: Path, *, directory_mode: int, file_mode: int) -> None:
    # Directories first: a read-only directory must be made writable before its files can change.
    directory.chmod(0o755)
    for path in directory.rglob("*"):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            path.chmod(0o755)
        elif stat.S_ISREG(mode):
            path.chmod(file_mode)
    for path in [*directory.rglob("*"), directory]:
        if path.is_dir() and not path.is_symlink():
            path.chmod(directory_mode)
