"""Uploads: every file arrives under exactly its name, once, or what failed is named."""

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.errors import UserError
from slipway.planning.artifact_place import ArtifactPlace, shared_place
from slipway.publishing import upload as uploading
from slipway.publishing.store import ArtifactStore
from slipway.publishing.upload import Upload, upload
from tests.support.projects import LOCAL, messages

NAMES = [
    "plain", "with space", "trailing ", 'quo"te', "apos'trophe", "dol$HOME", "${HOME}", "tick`id`",
    "back\\slash", "back\\\\two", "star*", "question?", "[a-z]", "{a,b}", "hash#", "per%20cent",
    "plus+", "amp&", "semi;", "pipe|", "lt<gt>", "tilde~", "-dash", "colon:", "ünï-雪", "e\u0301",
    "deep/er/still",
]  # fmt: skip
PREFIX = "artifacts/d/files/"
PLACE = shared_place(LOCAL)


def uploads(folder: Path, names: list[str]) -> list[Upload]:
    made = []
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
        made.append(described(path, name))
    return made


def described(path: Path, name: str) -> Upload:
    body = path.read_bytes()
    return Upload(path, name, len(body), hashlib.sha256(body).hexdigest())


def run(
    access: Access, items: list[Upload], place: ArtifactPlace = PLACE, **options: Any
) -> tuple[set[str], list[int]]:
    sent, advanced = set[str](), list[int]()
    store = ArtifactStore(access.client("s3"), LOCAL, place)
    told = {"digest": "d", "access": access, "advance": advanced.append, "sent": sent}
    upload(items, store=store, **{**told, **options})
    return sent, advanced


def write(access: Access, name: str, **options: Any) -> str:
    """Writes an object of an artifact; returns S3's error."""
    place = {"Bucket": LOCAL.artifact_bucket, "Key": f"{PREFIX}{name}"}
    try:
        access.client("s3").put_object(**place, Body=b"other", **options)
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return ""


def test_odd_names_arrive_as_they_are(tmp_path, access: Access, keys):
    items = uploads(tmp_path / "a 'folder' with $names*", NAMES)
    sent, advanced = run(access, items)
    assert keys() == {f"{PREFIX}{name}": name.encode() for name in NAMES}
    assert sent == set(NAMES)
    assert sum(advanced) == sum(item.size_bytes for item in items)


def test_large_files_are_sent_in_parts_beside_small_ones(tmp_path, access: Access, monkeypatch):
    parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    monkeypatch.setattr(uploading, "_PARTS", parts)
    uploads(tmp_path, ["large", "middle", "small"])
    for name, size_bytes in (("large", 11 << 20), ("middle", 2 << 20)):
        (tmp_path / name).write_bytes(bytes(size_bytes))
    items = [described(tmp_path / name, name) for name in ("small", "large", "middle")]
    sent, advanced = run(access, items)
    assert sent == {"large", "middle", "small"}
    assert sum(advanced) == (13 << 20) + len("small")
    client = access.client("s3")

    def head(name: str) -> Any:
        place = {"Bucket": LOCAL.artifact_bucket, "Key": f"{PREFIX}{name}"}
        return client.head_object(**place, ChecksumMode="ENABLED")

    assert head("large")["ETag"].endswith('-3"')
    # S3 has compared it with the SHA-256 that the file was hashed to.
    assert head("middle")["ContentLength"] == 2 << 20
    # All three are there, and none is written again.
    assert run(access, items)[0] == set()


def test_what_lies_there_is_left_alone(tmp_path, access: Access, keys):
    items = uploads(tmp_path, ["a", "z"])
    assert write(access, "a") == ""
    assert run(access, items)[0] == {"z"}
    assert keys() == {f"{PREFIX}a": b"other", f"{PREFIX}z": b"z"}


def test_content_that_was_not_hashed_does_not_arrive(tmp_path, access: Access, keys):
    (item,) = uploads(tmp_path, ["a"])
    assert run(access, [replace(item, sha256=hashlib.sha256(b"b").hexdigest())])[0] == set()
    assert keys() == {}


def test_a_missing_bucket_is_reported(tmp_path, access: Access):
    place = replace(PLACE, bucket="no-such-bucket")
    with pytest.raises(UserError) as caught:
        run(access, uploads(tmp_path, ["a", "b"]), place)
    assert len(caught.value.problems) == 2
    for problem in caught.value.problems:
        assert problem.message.startswith("an upload failed: An error occurred (NoSuchBucket)")
        assert problem.remedy == "Run the command again: what has arrived is not sent twice."


def test_one_missing_file_does_not_hold_up_the_others(tmp_path, access: Access, keys):
    items = uploads(tmp_path, ["a", "gone", "z"])
    (tmp_path / "gone").unlink()
    sent = set[str]()
    with pytest.raises(UserError) as caught:
        run(access, items, sent=sent)
    assert messages(caught.value) == [
        f"an upload failed: [Errno 2] No such file or directory: '{tmp_path}/gone'"
    ]
    assert sorted(keys()) == [f"{PREFIX}a", f"{PREFIX}z"]
    assert sent == {"a", "z"}


def test_an_upload_that_fails_everywhere_gives_up(tmp_path, access: Access):
    items = uploads(tmp_path, [str(number) for number in range(200)])
    for item in items:
        item.source.unlink()
    with pytest.raises(UserError) as caught:
        run(access, items)
    assert len(caught.value.problems) == 10


@pytest.mark.timeout(60)
def test_an_interrupted_upload_ends_at_once(tmp_path, access: Access, keys, monkeypatch):
    parts = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
    monkeypatch.setattr(uploading, "_PARTS", parts)
    uploads(tmp_path, ["large", "small"])
    (tmp_path / "large").write_bytes(bytes(40 << 20))

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    items = [described(tmp_path / name, name) for name in ("large", "small")]
    with pytest.raises(KeyboardInterrupt):
        run(access, items, advance=interrupt)
    assert f"{PREFIX}large" not in keys()
    # What was begun is taken back.
    found = access.client("s3").list_multipart_uploads(Bucket=LOCAL.artifact_bucket)
    assert found.get("Uploads", []) == []
