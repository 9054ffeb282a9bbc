"""The content address depends on paths and bytes, and on nothing of the machine."""

import hashlib
import os
import socket
import tarfile
from pathlib import Path

import pytest

from slipway.errors import UserError
from slipway.publishing.directory import pack
from slipway.publishing.manifest import Manifest, ManifestEntry, Snapshot
from tests.support.projects import messages, write_files

FILES = {"b/model.onnx": b"weights", "a.json": b"{}", "b.txt": b"", "b/é.txt": b"x"}


def refusal(directory: Path) -> UserError:
    with pytest.raises(UserError) as caught:
        Snapshot.of(directory, "samples/tiny")
    return caught.value


def test_entries_are_in_order_of_path_with_size_and_hash(tmp_path):
    manifest = Snapshot.of(write_files(tmp_path, FILES), "samples/tiny").manifest
    assert [(entry.path, entry.size_bytes) for entry in manifest.entries] == [
        ("a.json", 2),
        ("b.txt", 0),
        ("b/model.onnx", 7),
        ("b/é.txt", 1),
    ]
    assert manifest.entries[2].sha256 == hashlib.sha256(b"weights").hexdigest()
    assert manifest.size_bytes == 10


def test_the_rendered_manifest_is_what_the_digest_is_of(tmp_path):
    manifest = Snapshot.of(write_files(tmp_path, {"a.json": b"{}"}), "samples/tiny").manifest
    sha256 = hashlib.sha256(b"{}").hexdigest()
    assert manifest.render() == f'{{"version":1,"files":[["a.json",2,"{sha256}"]]}}'.encode()
    assert manifest.digest == hashlib.sha256(manifest.render()).hexdigest()


def test_order_of_creation_times_and_permissions_do_not_count(tmp_path):
    one = write_files(tmp_path / "one", FILES)
    two = write_files(tmp_path / "two", dict(reversed(FILES.items())))
    for path in two.rglob("*.*"):
        os.utime(path, (1, 1))
        path.chmod(0o755)
    (two / "empty").mkdir()
    assert Snapshot.of(one, "x").manifest.digest == Snapshot.of(two, "y").manifest.digest


def test_other_bytes_or_names_have_another_digest(tmp_path):
    digests = {Snapshot.of(write_files(tmp_path / "before", FILES), "x").manifest.digest}
    changes = ({"a.json": b"{} "}, {"c": b""}, {"b/model.onnx": b"weightz"})
    for number, change in enumerate(changes):
        directory = write_files(tmp_path / str(number), FILES | change)
        digests.add(Snapshot.of(directory, "x").manifest.digest)
    (tmp_path / "before" / "a.json").rename(tmp_path / "before" / "c.json")
    digests.add(Snapshot.of(tmp_path / "before", "x").manifest.digest)
    assert len(digests) == 5


def test_a_file_longer_than_one_read_is_hashed_as_a_whole(tmp_path):
    content = bytes(3 << 20) + b"end"
    manifest = Snapshot.of(write_files(tmp_path, {"big": content}), "x").manifest
    assert manifest.entries[0].sha256 == hashlib.sha256(content).hexdigest()


def test_links_are_refused_all_of_them_with_how_to_replace_them(tmp_path):
    write_files(tmp_path, FILES)
    (tmp_path / "link").symlink_to("a.json")
    (tmp_path / "b" / "gone").symlink_to("/nowhere")
    (tmp_path / "folder").symlink_to("b")
    error = refusal(tmp_path)
    assert messages(error) == [
        "samples/tiny/b/gone is a symbolic link",
        "samples/tiny/folder is a symbolic link",
        "samples/tiny/link is a symbolic link",
    ]
    assert {problem.remedy for problem in error.problems} == {
        "Replace it with the file it points to (`cp -rL` copies a directory so)."
    }


def test_what_is_no_file_is_refused(tmp_path):
    write_files(tmp_path, FILES)
    os.mkfifo(tmp_path / "b" / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
    assert messages(refusal(tmp_path)) == [
        "samples/tiny/b/pipe is a pipe, a socket or a device",
        "samples/tiny/socket is a pipe, a socket or a device",
    ]


@pytest.mark.parametrize("name", [b"new\nline", b"bell\x07", b"latin-\xe9"])
def test_names_that_s3_or_s5cmd_would_not_take_are_refused(tmp_path, name):
    (tmp_path / os.fsdecode(name)).write_bytes(b"x")
    (problem,) = refusal(tmp_path).problems
    assert problem.message == (
        f"samples/tiny has a file whose name cannot be uploaded: {os.fsdecode(name)!r}"
    )
    assert problem.remedy == "Rename it: a name is printable UTF-8 text."


def test_no_files_are_no_artifact(tmp_path):
    (tmp_path / "folder").mkdir()
    assert messages(refusal(tmp_path)) == ["samples/tiny has no files"]
    assert messages(refusal(tmp_path / "absent")) == ["samples/tiny is not a directory"]


def test_the_digest_is_computed_once_however_many_addresses_contain_it() -> None:
    manifest = Manifest((ManifestEntry("a", 1, "0" * 64),))
    assert manifest.digest is manifest.digest
    assert manifest == Manifest(manifest.entries)


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"files": [["a", 1]]}'])
def test_what_is_no_manifest_is_not_read(content: bytes) -> None:
    manifest = Manifest((ManifestEntry("a", 1, "0" * 64), ManifestEntry("b/c", 2, "1" * 64)))
    assert Manifest.read(manifest.render()) == manifest
    with pytest.raises(ValueError):  # noqa: PT011  # json's own error is one
        Manifest.read(content)


def test_the_archive_of_the_same_files_has_the_same_bytes(tmp_path):
    archives = []
    for number in (1, 2):
        directory, into = tmp_path / f"from{number}", tmp_path / f"to{number}"
        into.mkdir()
        write_files(directory, {"sub/b": b"second", "a": b"first", "left-out": b""})
        os.utime(directory / "a", (number, number))
        pack(directory, ["sub/b", "a"], into)
        archives.append(into / "model.tar.gz")
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as tar:
        contents = {each.name: tar.extractfile(each).read() for each in tar}
    assert contents == {"a": b"first", "sub/b": b"second"}
