"""The content address of an artifact: a manifest of its files, and the manifest's digest."""

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.hashes import hash_each


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
    def of(
        cls,
        directory: Path,
        shown_as: str,
        hashes: Callable[[Mapping[str, os.DirEntry[str]]], Mapping[str, str]] = hash_each,
    ) -> "Manifest":
        """Hashes a directory.

        Args:
            directory: the files to hash.
            shown_as: name of the directory in messages.
            hashes: returns the SHA-256 of each file, by its path within the directory.

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
        try:
            files, links, others = _listed(directory)
        except OSError as error:
            raise _unreadable(error, directory, shown_as) from None
        # A hub cache is made of links; what a link points to may be outside or gone.
        problems = [
            Problem(
                Code.SYMBOLIC_LINK,
                Kind.VALUE,
                f"{shown_as}/{name} is a symbolic link",
                "Replace it with the file it points to (`cp -rL` copies a directory so).",
            )
            for name in sorted(links)
        ]
        problems += [
            Problem(
                Code.SYMBOLIC_LINK,
                Kind.VALUE,
                f"{shown_as}/{name} is a pipe, a socket or a device",
                "Remove it, or put a file in its place.",
            )
            for name in sorted(others)
        ]
        problems += [
            Problem(
                Code.UNUSABLE_FILE_NAME,
                Kind.VALUE,
                f"{shown_as} has a file whose name cannot be uploaded: {name!r}",
                "Rename it: a name is printable UTF-8 text.",
            )
            for name in sorted(files)
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
        try:
            sizes_bytes = {name: entry.stat().st_size for name, entry in files.items()}
            sha256 = hashes(files)
        except OSError as error:
            raise _unreadable(error, directory, shown_as) from None
        return cls(
            tuple(ManifestEntry(name, sizes_bytes[name], sha256[name]) for name in sorted(files))
        )

    @classmethod
    def read(cls, content: bytes) -> "Manifest":
        """Reads a rendered manifest; raises ValueError if it is none."""
        try:
            rows = json.loads(content)["files"]
            return cls(
                tuple(
                    ManifestEntry(str(path), int(size), str(sha256)) for path, size, sha256 in rows
                )
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"no manifest: {error}") from None

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the rendered manifest, in hexadecimal; each file's address contains it."""
        return hashlib.sha256(self.render()).hexdigest()

    @property
    def size_bytes(self) -> int:
        """Sum of the files' sizes."""
        return sum(entry.size_bytes for entry in self.entries)

    def render(self) -> bytes:
        """Returns the manifest's canonical JSON, from which the digest is computed."""
        rows = [[entry.path, entry.size_bytes, entry.sha256] for entry in self.entries]
        return json.dumps({"version": 1, "files": rows}, separators=(",", ":")).encode()


def _unreadable(error: OSError, directory: Path, shown_as: str) -> UserError:
    path = Path(error.filename or directory)
    name = path.relative_to(directory).as_posix() if path.is_relative_to(directory) else path
    return UserError.of(
        Code.FILE_UNREADABLE,
        f"{shown_as}/{name} cannot be read: {error.strerror}",
        "Put it back, or give yourself the right to read it. Then run the command again.",
    )


def _listed(directory: Path) -> tuple[dict[str, os.DirEntry[str]], list[str], list[str]]:
    """Returns what lies below a directory, by the paths within it.

    Returns:
        The files, the symbolic links, and the pipes, sockets and devices.
    """
    # An entry asks for a file's state once. A `Path` for each of ten thousand files takes longer
    # than the disk.
    files: dict[str, os.DirEntry[str]] = {}
    links: list[str] = []
    others: list[str] = []
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(directory / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_symlink():
                    links.append(name)
                elif entry.is_dir():
                    pending.append(f"{name}/")
                elif entry.is_file():
                    files[name] = entry
                else:
                    others.append(name)
    return files, links, others
