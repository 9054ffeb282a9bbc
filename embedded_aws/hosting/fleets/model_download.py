"""Fills a container's model directory from S3, as SageMaker fills /opt/ml/model.

Objects under an uncompressed prefix keep the part of their key after the prefix as path; an archive
is extracted. The result is read-only. All data comes from the embedded AWS's own S3.
"""

import shutil
import stat
import tarfile
import time
from pathlib import Path, PurePosixPath

from botocore.exceptions import ClientError

from slipway.embedded_aws.hosting.resources.model_source import ModelSource
from slipway.embedded_aws.iam.s3_access import RoleAccess

_CHUNK_BYTES = 1 << 20


class ModelDataError(Exception):
    """The model data cannot be downloaded; the message says why."""


def download(
    source: ModelSource, access: RoleAccess, directory: Path, *, timeout_seconds: float
) -> None:
    """Fills the directory and makes it read-only; raises `ModelDataError` if that fails."""
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
    """Raises `ClientError`, `OSError`, `TimeoutError` or `ModelDataError` if this fails."""
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
            if hasattr(tarfile, "data_filter"):
                tar.extract(member, directory, filter="data")
            else:  # Python before 3.11.4
                path = PurePosixPath(member.name)
                if (
                    path.is_absolute()
                    or ".." in path.parts
                    or not (member.isreg() or member.isdir())
                ):
                    raise tarfile.ExtractError(f"{member.name!r} may lead out of the directory")
                tar.extract(member, directory)


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
