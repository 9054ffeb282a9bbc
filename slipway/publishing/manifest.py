"""The content address of an artifact: a manifest of its files, and the manifest's digest."""

import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from slipway.codes.code import Code
from slipway.directories import PRIVATE_FOLDERS
from slipway.errors import Kind, Problem, UserError
from slipway.publishing.hashes import (
    RESOLUTION_NS,
    FileState,
    hash_each,
    sha256_of,
    state_of,
)

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html
_LONGEST_KEY_BYTES: Final = 1024
# One cause can change every file: more names would tell no more.
_MOST_NAMED: Final = 10

# What is wrong, and the remedy.
_Refusal: TypeAlias = tuple[str, str]
# A hub cache is made of links; what a link points to may be outside or gone.
_LINK: Final[_Refusal] = (
    "is a symbolic link",
    "Replace it with the file it points to (`cp -rL` copies a directory so).",
)
_SPECIAL: Final[_Refusal] = (
    "is a pipe, a socket or a device",
    "Remove it, or put a file in its place.",
)
_PRIVATE: Final[_Refusal] = (
    "has history or settings of this machine, perhaps with tokens",
    "Move it out of the folder: its files belong to no model.",
)


def is_portable(path: str) -> bool:
    """Whether a file's path within an artifact can be uploaded and downloaded as it is."""
    parts = path.split("/")
    return path.isprintable() and not {"", ".", ".."}.intersection(parts)


@dataclass(frozen=True, order=True)
class ManifestEntry:
    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """All files of an artifact, in order of path. The same bytes have the same digest anywhere."""

    entries: tuple[ManifestEntry, ...]

    @classmethod
    def read(cls, content: bytes) -> "Manifest":
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
        return sum(entry.size_bytes for entry in self.entries)

    def render(self) -> bytes:
        """Returns the manifest's canonical JSON, from which the digest is computed."""
        rows = [[entry.path, entry.size_bytes, entry.sha256] for entry in self.entries]
        return json.dumps({"version": 1, "files": rows}, separators=(",", ":")).encode()


@dataclass(frozen=True)
class Snapshot:
    """The files of a directory as they were when they were hashed.

    `states` are from before, also of files that are left out, and were read at `begun_ns`, in
    nanoseconds since the epoch. `empty` has the folders without anything in them.
    """

    directory: Path
    shown_as: str
    manifest: Manifest
    states: Mapping[str, FileState]
    begun_ns: int
    empty: Sequence[str]

    @classmethod
    def of(
        cls,
        directory: Path,
        shown_as: str,
        hashes: Callable[[Mapping[str, os.DirEntry[str]]], Mapping[str, str]] = hash_each,
    ) -> "Snapshot":
        """Hashes a directory; files without a hash are left out.

        Raises `UserError` if there is no such directory, it is empty, or it has files that cannot
        travel.
        """
        if not directory.is_dir():
            raise UserError.of(
                Code.NO_FILES,
                f"{shown_as} is not a directory",
                f"Put the model's files into {directory}: a path in a config begins at the "
                "project's folder.",
            )
        try:
            files, refused, empty = _listed(directory)
        except OSError as error:
            raise _unreadable(error, directory, shown_as) from None
        problems = [
            Problem(Code.SYMBOLIC_LINK, Kind.VALUE, f"{shown_as}/{name} {what}", remedy)
            for name, (what, remedy) in sorted(refused.items())
        ]
        what = f"{shown_as} has a file whose name cannot be uploaded: "
        remedy = "Rename it: a name is printable UTF-8 text."
        problems += [
            Problem(Code.UNUSABLE_FILE_NAME, Kind.VALUE, f"{what}{name!r}", remedy)
            for name in sorted(files)
            if not is_portable(name)
        ]
        if not files and not problems:
            what, remedy = f"{shown_as} has no files", "Put the model there."
            problems = [Problem(Code.NO_FILES, Kind.VALUE, what, remedy)]
        if problems:
            raise UserError(problems)
        begun_ns = time.time_ns()
        try:
            # Before any file is hashed, so that a later change shows.
            states = {name: state_of(entry) for name, entry in files.items()}
            sha256 = hashes(files)
        except OSError as error:
            raise _unreadable(error, directory, shown_as) from None
        entries = (ManifestEntry(name, states[name][0], sha256[name]) for name in sorted(sha256))
        return cls(directory, shown_as, Manifest(tuple(entries)), states, begun_ns, empty)

    def changed(self, paths: Collection[str]) -> list[str]:
        """Returns which files may have had other content since, and which were added."""
        try:
            files, refused, _ = _listed(self.directory)
        except OSError:
            return sorted(paths)
        hashes = {entry.path: entry.sha256 for entry in self.manifest.entries}

        def is_same(path: str) -> bool:
            try:
                if state_of(files[path]) != self.states[path]:
                    return False
                # The times of a file that changed just now may not show another change.
                is_old = max(self.states[path][1:3]) <= self.begun_ns - RESOLUTION_NS
                return is_old or sha256_of(self.directory / path) == hashes[path]
            except (KeyError, OSError):
                return False

        added = {*files, *refused} - set(self.states)
        return sorted({*added, *(path for path in paths if not is_same(path))})


def long_keys(prefix: str, manifest: Manifest) -> list[Problem]:
    """Returns a problem for each file whose key in S3 would be too long."""
    problems = []
    for entry in manifest.entries:
        length = len(f"{prefix}{entry.path}".encode())
        if (excess := length - _LONGEST_KEY_BYTES) > 0:
            remedy = "Shorten the name of the file or of its folders by "
            remedy += "1 byte." if excess == 1 else f"{excess} bytes."
            message = f"the key of {entry.path} would have {length:,} bytes: S3 takes 1,024"
            problems.append(Problem(Code.UNUSABLE_FILE_NAME, Kind.VALUE, message, remedy))
    return problems


def named(paths: Sequence[str]) -> str:
    """Returns the first of some paths, and how many more there are."""
    more = len(paths) - _MOST_NAMED
    return ", ".join(paths[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _unreadable(error: OSError, directory: Path, shown_as: str) -> UserError:
    path = Path(error.filename or directory)
    name = path.relative_to(directory).as_posix() if path.is_relative_to(directory) else path
    return UserError.of(
        Code.FILE_UNREADABLE,
        f"{shown_as}/{name} cannot be read: {error.strerror}",
        "Put it back, or give yourself the right to read it. Then run the command again.",
    )


def _listed(
    directory: Path,
) -> tuple[dict[str, os.DirEntry[str]], dict[str, _Refusal], list[str]]:
    """Returns the files, what no artifact can have, and the empty folders, by path."""
    # An entry asks for a file's state once. A `Path` for each of ten thousand files takes longer
    # than the disk.
    files: dict[str, os.DirEntry[str]] = {}
    refused: dict[str, _Refusal] = {}
    empty: list[str] = []
    pending = [""]
    while pending:
        folder = pending.pop()
        with os.scandir(directory / folder) as entries:
            found = list(entries)
        if not found and folder:
            empty.append(folder)
        for entry in found:
            name = f"{folder}{entry.name}"
            if entry.name in PRIVATE_FOLDERS:
                refused[name] = _PRIVATE
            elif entry.is_symlink():
                refused[name] = _LINK
            elif entry.is_dir():
                pending.append(f"{name}/")
            elif entry.is_file():
                files[name] = entry
            else:
                refused[name] = _SPECIAL
    return files, refused, sorted(empty)
