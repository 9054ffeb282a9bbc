"""A synthetic checkpoint: the contents of its files and its tar.gz, without writing either.

Every file of weights is the same block several times. The archive is compressed block by block, as
a gzip file may be. Extracting it gives the same and costs the same as for an archive compressed in
one piece. gzip looks back 32 kB only, and a block is far longer. Only little data is therefore
made, and none of it is read from the disk while it is served.
"""

import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.errors import BenchmarkError
from benchmarks.lmi.design import Content, Design

ARCHIVE = "model.tar.gz"
_GZIP_LEVEL = 6
_GZIP_WINDOW = 31  # zlib's notation: the longest window, with gzip's header
_STANDARD_DEVIATION = 0.02
_COMPARED_BYTES = 4 * 1024 * 1024
_TAR_UNIT_BYTES = 512


@dataclass(frozen=True)
class Piece:
    """A whole file that an object contains."""

    file: Path
    length_bytes: int


@dataclass(frozen=True)
class StoredObject:
    """An object of the store: several files, one after the other."""

    key: str
    pieces: tuple[Piece, ...]

    @property
    def size_bytes(self) -> int:
        """Returns the size of all pieces."""
        return sum(piece.length_bytes for piece in self.pieces)


@dataclass(frozen=True)
class Checkpoint:
    """The files of one content, which repeat `block`, and the tar.gz of the same files."""

    content: Content
    block: Path
    files: tuple[StoredObject, ...]
    archive: StoredObject

    @property
    def size_bytes(self) -> int:
        """Returns the size of the files."""
        return sum(file.size_bytes for file in self.files)

    @property
    def prefix(self) -> str:
        """Returns the prefix of the files' keys in the store."""
        return f"{self.content}/files/"


def make_checkpoint(design: Design, content: Content, folder: Path) -> Checkpoint:
    """Makes a block, and the pieces of the archive."""
    folder.mkdir()
    block = _written(folder / "block", _block(design, content))
    config = _written(folder / "config", b'{"model_type": "t5"}\n')
    names = {
        f"pytorch_model-{number:05}-of-{design.shards:05}.bin": (block,) * design.blocks_per_shard
        for number in range(1, design.shards + 1)
    }
    contents = {"config.json": (config,), **names}
    prefix = f"{content}/files/"
    files = tuple(StoredObject(f"{prefix}{name}", pieces) for name, pieces in contents.items())

    compressed = {
        block: _compressed(folder / "block.gz", block),
        config: _compressed(folder / "config.gz", config),
    }
    archive: list[Piece] = []
    for number, (name, pieces) in enumerate(contents.items()):
        size = sum(piece.length_bytes for piece in pieces)
        header = _written(folder / f"{number}.header", _header(name, size))
        archive.append(_compressed(folder / f"{number}.header.gz", header))
        archive += [compressed[piece] for piece in pieces]
        if padding := -size % _TAR_UNIT_BYTES:
            zeros = _written(folder / f"{number}.padding", bytes(padding))
            archive.append(_compressed(folder / f"{number}.padding.gz", zeros))
    end = _written(folder / "end", bytes(tarfile.RECORDSIZE))
    archive.append(_compressed(folder / "end.gz", end))
    stored = StoredObject(f"{content}/{ARCHIVE}", tuple(archive))
    return Checkpoint(content, block.file, files, stored)


def check_copy(checkpoint: Checkpoint, folder: Path, *, bytes_too: bool) -> None:
    """Checks that the fetched files equal the stored files."""
    expected = {
        file.key.removeprefix(checkpoint.prefix): file.size_bytes for file in checkpoint.files
    }
    found = {
        str(path.relative_to(folder)): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }
    if found != expected:
        raise BenchmarkError(f"what arrived is {found}, and what was stored is {expected}")
    if not bytes_too:
        return
    for file in checkpoint.files:
        path = folder / file.key.removeprefix(checkpoint.prefix)
        if not _holds(path, file):
            raise BenchmarkError(f"{path.name} did not arrive as it was stored")


def _holds(path: Path, file: StoredObject) -> bool:
    with path.open("rb") as arrived:
        for piece in file.pieces:
            with piece.file.open("rb") as stored:
                while wanted := stored.read(_COMPARED_BYTES):
                    if arrived.read(len(wanted)) != wanted:
                        return False
    return True


def _block(design: Design, content: Content) -> bytes:
    generator = np.random.default_rng([design.seed, *content.encode()])
    if content is Content.RANDOM:
        return generator.bytes(design.block_bytes)
    values = generator.standard_normal(design.block_bytes // 4, dtype=np.float32)
    return (values * np.float32(_STANDARD_DEVIATION)).tobytes()


def _header(name: str, size: int) -> bytes:
    entry = tarfile.TarInfo(name)
    entry.size = size
    return entry.tobuf(tarfile.USTAR_FORMAT)


def _written(path: Path, content: bytes) -> Piece:
    path.write_bytes(content)
    return Piece(path, len(content))


def _compressed(path: Path, piece: Piece) -> Piece:
    compressor = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP_WINDOW)
    length = 0
    with piece.file.open("rb") as source, path.open("wb") as target:
        for part in iter(lambda: source.read(_COMPARED_BYTES), b""):
            length += target.write(compressor.compress(part))
        length += target.write(compressor.flush())
    return Piece(path, length)
