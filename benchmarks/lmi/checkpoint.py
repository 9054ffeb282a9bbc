"""A synthetic checkpoint: its files, and a tar.gz of the same files.

Every file of weights is the same block several times, and all of these files are one on the disk.
The archive is compressed block by block, as a gzip file may be. Extracting it gives the same and
costs the same as for an archive compressed in one piece. gzip looks back 32 kB only, and a block is
far longer. Only little data is therefore made and compressed.
"""

import filecmp
import gzip
import os
import tarfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.design import Content, Design

ARCHIVE = "model.tar.gz"
_CONFIG = b'{"model_type": "t5"}\n'
_GZIP_LEVEL = 6
_STANDARD_DEVIATION = 0.02
_TAR_UNIT_BYTES = 512


@dataclass(frozen=True)
class Checkpoint:
    """The files of one content, and the tar.gz of the same files, in the folder of a bucket."""

    content: Content
    bucket_folder: Path

    @property
    def prefix(self) -> str:
        return f"{self.content}/files/"

    @property
    def archive_key(self) -> str:
        return f"{self.content}/{ARCHIVE}"

    @property
    def archive(self) -> Path:
        return self.bucket_folder / self.archive_key

    @property
    def files(self) -> list[Path]:
        return sorted((self.bucket_folder / self.prefix).iterdir())

    @property
    def size_bytes(self) -> int:
        return sum(file.stat().st_size for file in self.files)


def make_checkpoint(design: Design, content: Content, bucket_folder: Path) -> Checkpoint:
    made = Checkpoint(content, bucket_folder)
    files = bucket_folder / made.prefix
    files.mkdir(parents=True)
    (files / "config.json").write_bytes(_CONFIG)
    block = _block(design, content)
    first, *others = (
        files / f"pytorch_model-{number:05}-of-{design.shards:05}.bin"
        for number in range(1, design.shards + 1)
    )
    with first.open("wb") as file:
        for _ in range(design.blocks_per_shard):
            file.write(block)
    for other in others:
        os.link(first, other)
    compressed = _compressed(block)
    with made.archive.open("wb") as archive:
        for path in made.files:
            entry = tarfile.TarInfo(path.name)
            entry.size = path.stat().st_size
            archive.write(_compressed(entry.tobuf(tarfile.USTAR_FORMAT)))
            if path.suffix == ".json":
                archive.write(_compressed(_CONFIG))
            else:
                for _ in range(design.blocks_per_shard):
                    archive.write(compressed)
            archive.write(_compressed(bytes(-entry.size % _TAR_UNIT_BYTES)))
        archive.write(_compressed(bytes(tarfile.RECORDSIZE)))
    return made


def check_copy(checkpoint: Checkpoint, folder: Path, *, bytes_too: bool) -> None:
    expected = {file.name: file.stat().st_size for file in checkpoint.files}
    found = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
    if found != expected:
        raise BenchmarkError(f"what arrived is {found}, and what was stored is {expected}")
    for file in checkpoint.files if bytes_too else ():
        if not filecmp.cmp(file, folder / file.name, shallow=False):
            raise BenchmarkError(f"{file.name} did not arrive as it was stored")


def _block(design: Design, content: Content) -> bytes:
    generator = np.random.default_rng([design.seed, *content.encode()])
    if content is Content.RANDOM:
        return generator.bytes(design.block_bytes)
    values = generator.standard_normal(design.block_bytes // 4, dtype=np.float32)
    return (values * np.float32(_STANDARD_DEVIATION)).tobytes()


def _compressed(content: bytes) -> bytes:
    return gzip.compress(content, _GZIP_LEVEL, mtime=0)
