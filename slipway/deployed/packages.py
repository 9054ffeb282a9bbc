"""Reads model data in S3: the small files of a server's package, and the facts of a checkpoint.

No weight is read: of a safetensors file only the header, which names its tensors.
"""

import io
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from slipway.codes.code import Code
from slipway.config.checkpoint import CheckpointFacts
from slipway.deployed.described import Package
from slipway.errors import UserError
from slipway.publishing.file_set import checkpoint_facts, is_weights
from slipway.publishing.objects import file_set, objects_under
from slipway.publishing.stored import listed
from slipway.s3_address import S3Address

# A package of settings and code has kilobytes; an archive with weights is not read.
_LARGEST_ARCHIVE_BYTES = 20_000_000
_LARGEST_FILES_BYTES = 20_000_000
_MOST_FILES = 1000
_PACKAGE_FILES = (".properties", ".py", ".txt", ".json", ".jinja")
# What an endpoint's settings are called where they lie in its model data.
_SETTINGS = "serving.properties"


@dataclass(frozen=True)
class StoredCheckpoint:
    """Weights under a prefix of S3; the size is None if the files were not listed.

    `unread` is why they were not read, as half a sentence; empty if they were.
    """

    facts: CheckpointFacts
    size_gb: float | None = None
    unread: str = ""


def read_package(s3: Any, address: str) -> Package:
    """Returns the small files of model data that has settings of a server; else none."""
    bucket, _, key = address.removeprefix("s3://").partition("/")
    try:
        if address.endswith("/"):
            return Package(_of_prefix(s3, bucket, key))
        size = s3.head_object(Bucket=bucket, Key=key)["ContentLength"]
        if size > _LARGEST_ARCHIVE_BYTES:
            return Package(
                unread=f"it has {size / 1e6:,.0f} MB, and at most "
                f"{_LARGEST_ARCHIVE_BYTES // 1_000_000} MB are read"
            )
        return Package(_of_archive(s3.get_object(Bucket=bucket, Key=key)["Body"].read()))
    except (BotoCoreError, ClientError, tarfile.TarError, OSError, EOFError) as error:
        return Package(unread=f"it cannot be read: {error}")


def read_checkpoint_in_s3(s3: Any, uri: str) -> StoredCheckpoint:
    """Returns what the files under a prefix say about a network."""
    prefix = S3Address.of(uri)
    try:
        files = file_set(s3, prefix, objects_under(s3, prefix))
        facts = checkpoint_facts(files)
    except (BotoCoreError, ClientError) as error:
        return StoredCheckpoint(CheckpointFacts(), unread=f"its files cannot be read: {error}")
    except UserError as error:
        if error.problems[0].code is Code.NO_FILES:
            return StoredCheckpoint(CheckpointFacts())
        return StoredCheckpoint(CheckpointFacts(), unread=error.problems[0].message)
    sizes = files.sizes_bytes
    size = sum(sizes[name] for name in sizes if is_weights(name))
    return StoredCheckpoint(facts, round((size or sum(sizes.values())) / 1e9, 3) or None)


def _of_prefix(s3: Any, bucket: str, prefix: str) -> Mapping[str, bytes]:
    sizes = {path: item.size_bytes for path, item in listed(s3, bucket, prefix).items()}
    if _SETTINGS not in sizes:
        return {}
    names = [name for name in sizes if name.endswith(_PACKAGE_FILES)]
    if sum(sizes[name] for name in names) > _LARGEST_FILES_BYTES:
        names = [_SETTINGS]
    return {
        name: s3.get_object(Bucket=bucket, Key=f"{prefix}{name}")["Body"].read() for name in names
    }


def _of_archive(content: bytes) -> Mapping[str, bytes]:
    """Returns the small files of an archive; nothing is unpacked to a disk."""
    found: dict[str, bytes] = {}
    total = 0
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        for member in archive:
            path = PurePosixPath(member.name)
            total += member.size  # of every file, because each is decompressed on the way
            if total > _LARGEST_FILES_BYTES or len(found) >= _MOST_FILES:
                raise tarfile.TarError("its files are too many or too large for a package of code")
            if not member.isfile() or ".." in path.parts or not path.name.endswith(_PACKAGE_FILES):
                continue
            file = archive.extractfile(member)
            if file is not None:
                found[path.as_posix().removeprefix("./").lstrip("/")] = file.read()
    # SageMaker unpacks the archive into the model's directory; many have a folder of their own.
    root = next((name for name in found if PurePosixPath(name).name == _SETTINGS), None)
    if root is None:
        return {}
    folder = root.removesuffix(_SETTINGS)
    return {
        name.removeprefix(folder): data for name, data in found.items() if name.startswith(folder)
    }
