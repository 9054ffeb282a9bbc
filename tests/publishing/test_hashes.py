"""Hashes that are kept: an unchanged file is not read again, and every change is noticed."""

import hashlib
import json
import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from slipway.errors import UserError
from slipway.publishing import hashes
from slipway.publishing.hashes import KnownHashes, sha256_of
from slipway.publishing.manifest import Snapshot
from tests.publishing.progress import Progress, run
from tests.support.projects import write_files

FILES = {"a.json": b"{}", "sub/model.onnx": b"weights"}
LATER_SECONDS = 10


class Disk:
    """A directory, and a publish of it some seconds after the last change."""

    def __init__(self, folder: Path) -> None:
        self.directory, self.kept = folder / "model", folder / "kept" / "hashes.json"
        write_files(self.directory, FILES)

    def hash(self, later_seconds: float = LATER_SECONDS) -> tuple[Mapping[str, str], int]:
        """Returns the hashes, and the number of bytes that were read."""
        progress = Progress()
        known = KnownHashes(self.kept, progress, now=lambda: time.time() + later_seconds)
        manifest = Snapshot.of(self.directory, "model", known).manifest
        return {each.path: each.sha256 for each in manifest.entries}, sum(progress.sizes["hashing"])

    def truth(self) -> Mapping[str, str]:
        manifest = Snapshot.of(self.directory, "model").manifest
        return {each.path: each.sha256 for each in manifest.entries}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    return Disk(tmp_path)


def test_an_unchanged_file_is_read_once(disk: Disk) -> None:
    expected = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    assert disk.hash() == (expected, 9)
    assert disk.hash() == (expected, 0)


def replace_keeping_its_times(disk: Disk) -> None:
    path = disk.directory / "sub/model.onnx"
    before = path.stat()
    path.write_bytes(b"WEIGHTS")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def exchange(disk: Disk) -> None:
    first, second = disk.directory / "a.json", disk.directory / "b.json"
    second.write_bytes(b"[]")
    first.rename(disk.directory / "c")
    second.rename(first)
    (disk.directory / "c").unlink()


@pytest.mark.parametrize(
    "change",
    [
        lambda disk: (disk.directory / "a.json").write_bytes(b"[]"),
        lambda disk: (disk.directory / "new").write_bytes(b"more"),
        lambda disk: (disk.directory / "a.json").unlink(),
        replace_keeping_its_times,
        exchange,
    ],
)
def test_every_change_is_noticed(disk: Disk, change: Callable[[Disk], None]) -> None:
    before, _ = disk.hash()
    change(disk)
    after, _ = disk.hash()
    assert after == disk.truth() != before
    assert disk.hash() == (after, 0)


def test_what_was_just_written_is_read_again(disk: Disk) -> None:
    """A change in the same tick of the file system's clock would leave its times as they were."""
    disk.hash(later_seconds=1.5)
    assert disk.hash(later_seconds=1.5)[1] == 9
    assert disk.hash()[1] == 9
    assert disk.hash()[1] == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"version": 2, "files": {}}',
        b'{"version": 1, "files": {"a.json": [2]}}',
        b'{"version": 1, "files": {"a.json": [2, 0, 0, 0, "short"]}}',
        b'{"version": 1, "files": [1]}',
    ],
)
def test_a_damaged_file_of_hashes_is_nothing_known(disk: Disk, content: bytes) -> None:
    disk.hash()
    disk.kept.write_bytes(content)
    assert disk.hash() == (disk.truth(), 9)
    assert disk.hash()[1] == 0


def test_a_file_that_is_gone_is_forgotten(disk: Disk) -> None:
    disk.hash()
    (disk.directory / "a.json").unlink()
    disk.hash()
    assert list(json.loads(disk.kept.read_bytes())["files"]) == ["sub/model.onnx"]
    assert [path.name for path in disk.kept.parent.iterdir()] == ["hashes.json"]


def test_a_file_that_goes_while_it_is_hashed_is_named(disk: Disk) -> None:
    class Losing(Progress):
        def start(self, total_bytes: int, activity: str = "uploading") -> None:
            (disk.directory / "sub/model.onnx").unlink()

    with pytest.raises(UserError) as caught:
        Snapshot.of(disk.directory, "model", KnownHashes(disk.kept, Losing()))
    (problem,) = caught.value.problems
    assert problem.message == "model/sub/model.onnx cannot be read: No such file or directory"


def test_each_processor_hashes_a_file(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        (disk.directory / f"part-{number}").write_bytes(b"%d" % number)
    together = threading.Barrier(4, timeout=20)

    def waiting_for_others(path: Path, advance: Callable[[int], None]) -> str:
        together.wait()
        return sha256_of(path, advance)

    expected = disk.truth()
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(hashes, "sha256_of", waiting_for_others)
    assert disk.hash() == (expected, 15)


def test_a_publish_keeps_the_hashes_of_its_project(access, root, monkeypatch) -> None:
    # The files of this test are younger than two seconds.
    monkeypatch.setattr(hashes, "RESOLUTION_NS", -LATER_SECONDS * 10**9)
    hashed = []
    for _ in range(2):
        progress = Progress()
        run(root, access, progress=progress)
        hashed.append(sum(progress.sizes["hashing"]))
    assert hashed == [4098, 0]
