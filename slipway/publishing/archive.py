"""Packs a directory into the one archive that a serverless endpoint takes as its model data."""

import gzip
import tarfile
from collections.abc import Iterable
from pathlib import Path

from slipway.planning.artifact_place import MODEL_ARCHIVE

# Deflate at this level is fast, and weights hardly shrink at any.
_LEVEL = 1


def pack(directory: Path, names: Iterable[str], into: Path) -> None:
    """Writes the archive of a directory's files; the same files give the same bytes.

    Args:
        directory: has the files.
        names: of the files, below the directory.
        into: directory that gets the archive.
    """
    with (
        (into / MODEL_ARCHIVE).open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for name in sorted(names):
            path = directory / name
            info = tarfile.TarInfo(name)
            info.size, info.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(info, content)
