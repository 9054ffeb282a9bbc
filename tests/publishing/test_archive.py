"""The archive that a serverless endpoint takes in place of files."""

import os
import tarfile

from slipway.publishing.directory import pack


def test_the_same_files_give_the_same_bytes(tmp_path):
    archives = []
    for number in (1, 2):
        directory, into = tmp_path / f"from{number}", tmp_path / f"to{number}"
        (directory / "sub").mkdir(parents=True)
        into.mkdir()
        (directory / "sub" / "b").write_bytes(b"second")
        (directory / "a").write_bytes(b"first")
        (directory / "left-out").write_bytes(b"")
        os.utime(directory / "a", (number, number))
        pack(directory, ["sub/b", "a"], into)
        archives.append(into / "model.tar.gz")
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as tar:
        contents = {each.name: tar.extractfile(each).read() for each in tar}
    assert contents == {"a": b"first", "sub/b": b"second"}
