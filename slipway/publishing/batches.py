"""Groups uploads for s5cmd by the sizes of their files.

s5cmd sends up to 256 files at once and five parts of each, whatever their sizes. Hundreds of large
files would then share a thousand connections, each too slow for S3, and one large file would have
five. Small files need many workers, because each waits for S3's answer most of the time.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_MEBIBYTE: Final = 1 << 20
# s5cmd's own part size: a file up to this size is sent as a whole.
_PART_MEBIBYTES: Final = 50
# Five parts of 20 files: enough for the network of an instance, and few enough for a home's.
_CONNECTIONS: Final = 100
_LEAST_CONCURRENCY: Final = 5
_MOST_CONCURRENCY: Final = 32
_SMALL_FILE_WORKERS: Final = 256
# Each part is a request, and S3 takes 10,000 of them.
_MOST_PARTS: Final = 1000
# s5cmd needs three quarters more processor time for a file that has a command of its own.
_LEAST_FILES_OF_A_FOLDER: Final = 100


@dataclass(frozen=True)
class Upload:
    """One file to copy to one S3 address."""

    source: Path
    destination: str
    size_bytes: int


@dataclass(frozen=True)
class Folder:
    source: Path
    destination: str


@dataclass(frozen=True)
class Batch:
    """Uploads of one run of s5cmd: files at once, parts of each at once, and a part's size.

    `folder` holds exactly these files; with None each needs a command.
    """

    uploads: Sequence[Upload]
    workers: int
    concurrency: int = _LEAST_CONCURRENCY
    part_mebibytes: int = _PART_MEBIBYTES
    folder: Folder | None = None


def batches(uploads: Sequence[Upload], folder: Folder | None = None) -> Iterator[Batch]:
    """Yields the uploads in one or two groups, the large files first."""
    large = [each for each in uploads if each.size_bytes > _PART_MEBIBYTES * _MEBIBYTE]
    small = [each for each in uploads if each.size_bytes <= _PART_MEBIBYTES * _MEBIBYTE]
    if large:
        concurrency = min(max(_CONNECTIONS // len(large), _LEAST_CONCURRENCY), _MOST_CONCURRENCY)
        largest = max(each.size_bytes for each in large)
        yield Batch(
            large,
            workers=_CONNECTIONS // concurrency,
            concurrency=concurrency,
            part_mebibytes=max(_PART_MEBIBYTES, math.ceil(largest / _MOST_PARTS / _MEBIBYTE)),
        )
    if small:
        is_whole = not large and len(small) >= _LEAST_FILES_OF_A_FOLDER
        yield Batch(small, workers=_SMALL_FILE_WORKERS, folder=folder if is_whole else None)
