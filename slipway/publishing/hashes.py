"""SHA-256 of files, kept from one publish to the next, so that no unchanged file is read again.

A change within the resolution of a file system's clock can leave a file's times as they were. What
was changed less than two seconds before it was read is therefore not kept.
"""

import hashlib
import json
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from slipway.publishing.progress import Progress
from slipway.publishing.whole_files import replace_file

_VERSION: Final = 1
# FAT's times have this resolution, the coarsest in use.
RESOLUTION_NS: Final = 2_000_000_000
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_CHUNK_BYTES: Final = 1 << 20
# Python computes no hash while it is between two files, so more threads gain little.
_MOST_WORKERS: Final = 8

# Size in bytes, the times of its content and of its inode in nanoseconds, and the inode.
FileState: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class KnownHashes:
    """The hashes of a directory's files, kept in a file: none is known if it is damaged."""

    file: Path
    progress: Progress
    now: Callable[[], float] = time.time

    @classmethod
    def of(cls, root: Path, directory: Path, progress: Progress) -> "KnownHashes":
        """Returns the hashes that a project keeps of a directory."""
        name = hashlib.sha256(os.fsencode(directory.resolve())).hexdigest()[:16]
        return cls(root / ".slipway" / "hashes" / f"{name}.json", progress)

    def __call__(self, files: Mapping[str, os.DirEntry[str]]) -> Mapping[str, str]:
        known = self._read()
        states = {name: state_of(entry) for name, entry in files.items()}
        hashes = {
            name: known[name][1]
            for name, state in states.items()
            if name in known and known[name][0] == state
        }
        changed = [name for name in files if name not in hashes]
        self.progress.start(sum(states[name][0] for name in changed), "hashing")
        kept = {name: (states[name], sha256) for name, sha256 in hashes.items()}
        for name, sha256, begun_ns in self._hash({name: files[name] for name in changed}):
            hashes[name] = sha256
            if max(states[name][1:3]) <= begun_ns - RESOLUTION_NS:
                kept[name] = (states[name], sha256)
        if kept != known:
            self._write(kept)
        return hashes

    def _hash(self, files: Mapping[str, os.DirEntry[str]]) -> list[tuple[str, str, int]]:
        """Returns path, SHA-256 and begin in nanoseconds of each file, on all processors."""
        lock, is_over = threading.Lock(), threading.Event()
        left = iter(files.items())

        def advance(size_bytes: int) -> None:
            with lock:
                self.progress.advance(size_bytes)

        def work() -> list[tuple[str, str, int]]:
            found = []
            while not is_over.is_set():
                with lock:
                    name, entry = next(left, (None, None))
                if name is None or entry is None:
                    break
                begun_ns = int(self.now() * 1e9)
                found.append((name, sha256_of(Path(entry), advance), begun_ns))
            return found

        workers = min(os.cpu_count() or 1, len(files), _MOST_WORKERS)
        if workers < 2:
            return work()
        with ThreadPoolExecutor(workers) as pool:
            futures = [pool.submit(work) for _ in range(workers)]
            try:
                return [each for future in as_completed(futures) for each in future.result()]
            except BaseException:
                # A file that cannot be read, or an interrupt, ends the other threads as well.
                is_over.set()
                raise

    def _read(self) -> dict[str, tuple[FileState, str]]:
        try:
            document = json.loads(self.file.read_bytes())
            if document["version"] != _VERSION:
                return {}
            found = {
                name: ((int(size), int(mtime), int(ctime), int(inode)), str(sha256))
                for name, (size, mtime, ctime, inode, sha256) in document["files"].items()
            }
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return {}
        return found if all(_SHA256.fullmatch(each) for _, each in found.values()) else {}

    def _write(self, kept: Mapping[str, tuple[FileState, str]]) -> None:
        rows = {name: [*state, sha256] for name, (state, sha256) in sorted(kept.items())}
        content = json.dumps({"version": _VERSION, "files": rows}, separators=(",", ":"))
        # Two publishes at once, or a kill, leave one whole file.
        replace_file(self.file, content, scratch=self.file.parent)


def hash_each(files: Mapping[str, os.DirEntry[str]]) -> Mapping[str, str]:
    """Returns the SHA-256 of each file, in hexadecimal, without keeping it."""
    return {name: sha256_of(Path(entry)) for name, entry in files.items()}


def sha256_of(path: Path, advance: Callable[[int], None] = lambda _: None) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
            advance(len(chunk))
    return digest.hexdigest()


def state_of(entry: os.DirEntry[str]) -> FileState:
    """Returns what changes with a file's content. An entry tells what it was asked first."""
    found = entry.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
