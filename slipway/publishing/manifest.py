"""The content address of an artifact: a manifest of its files, and the manifest's digest."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError

_CHUNK_BYTES = 1 << 20


def is_portable(path: str) -> bool:
    """Whether a file's path within an artifact can be uploaded and downloaded as it is."""
    parts = path.split("/")
    return path.isprintable() and not {"", ".", ".."}.intersection(parts)


@dataclass(frozen=True, order=True)
class ManifestEntry:
    """One file: its path within the artifact, size and SHA-256."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """All files of an artifact, in order of path. The same bytes have the same digest anywhere."""

    entries: tuple[ManifestEntry, ...]

    @classmethod
    def of(cls, directory: Path, shown_as: str) -> "Manifest":
        """Hashes a directory.

        Args:
            directory: the files to hash.
            shown_as: name of the directory in messages.

        Raises:
            UserError: there is no such directory, it is empty, or it has files that cannot travel.
        """
        if not directory.is_dir():
            raise UserError.of(
                Code.NO_FILES,
                f"{shown_as} is not a directory",
                f"Put the model's files into {directory}: a path in a config begins at the "
                "project's folder.",
            )
        files = sorted(_files(directory))
        # A hub cache is made of links; what a link points to may be outside or gone.
        links = [path for path in directory.rglob("*") if path.is_symlink()]
        problems = [
            Problem(
                Code.SYMBOLIC_LINK,
                Kind.VALUE,
                f"{shown_as}/{path.relative_to(directory).as_posix()} is a symbolic link",
                "Replace it with the file it points to (`cp -rL` copies a directory so).",
            )
            for path in sorted(links)
        ]
        problems += [
            Problem(
                Code.UNUSABLE_FILE_NAME,
                Kind.VALUE,
                f"{shown_as} has a file whose name cannot be uploaded: {name!r}",
                "Rename it: a name is printable UTF-8 text.",
            )
            for name in (path.relative_to(directory).as_posix() for path in files)
            if not is_portable(name)
        ]
        if not files and not problems:
            problems = [
                Problem(
                    Code.NO_FILES, Kind.VALUE, f"{shown_as} has no files", "Put the model there."
                )
            ]
        if problems:
            raise UserError(problems)
        return cls(
            tuple(
                sorted(
                    ManifestEntry(
                        path.relative_to(directory).as_posix(), path.stat().st_size, _sha256(path)
                    )
                    for path in files
                )
            )
        )

    @property
    def digest(self) -> str:
        """SHA-256 of the rendered manifest, in hexadecimal."""
        return hashlib.sha256(self.render()).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(entry.size_bytes for entry in self.entries)

    def render(self) -> bytes:
        """Returns the manifest's canonical JSON, from which the digest is computed."""
        rows = [[entry.path, entry.size_bytes, entry.sha256] for entry in self.entries]
        return json.dumps({"version": 1, "files": rows}, separators=(",", ":")).encode()


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file() and not path.is_symlink())


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()
