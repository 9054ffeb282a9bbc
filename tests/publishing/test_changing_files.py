"""What lies under a digest is what the digest names: files and objects that change at each step."""

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.publishing import manifest as manifests
from slipway.publishing.store import SEAL
from slipway.publishing.stored import listed, seal
from tests.publishing.progress import Asked, Changing, Progress, manifest_of, run
from tests.support.projects import LOCAL, messages, write_files

NAME = "model.onnx"
CONTENT = bytes(range(256)) * 16
OTHER = CONTENT[::-1]


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(OTHER)
    other.replace(path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "changed": lambda path: path.write_bytes(OTHER),
    "grown": lambda path: path.write_bytes(CONTENT + OTHER),
    "shrunk": lambda path: path.write_bytes(CONTENT[:7]),
    "replaced": replaced,
    "deleted": lambda path: path.unlink(),
    "joined": lambda path: path.with_name("another").write_bytes(OTHER),
}


def under(root: Path, name: str) -> str:
    return f"artifacts/{manifest_of(root).digest}/{name}"


def require_right(objects: dict[str, bytes]) -> None:
    for key, body in objects.items():
        prefix, _, name = key.rpartition("/")
        if name != "manifest.json":
            continue
        assert hashlib.sha256(body).hexdigest() == prefix.rpartition("/")[2]
        assert {
            (path, hashlib.sha256(objects[f"{prefix}/files/{path}"]).hexdigest())
            for path, _, _ in json.loads(body)["files"]
        } == {(path, sha256) for path, _, sha256 in json.loads(body)["files"]}


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
@pytest.mark.parametrize(
    ("change", "step"),
    [
        *((change, "uploading begins") for change in CHANGES),
        *((change, "hashing begins") for change in ("changed", "deleted", "joined")),
        *((change, "4096 bytes were sent") for change in ("changed", "replaced", "deleted")),
    ],
)
def test_what_changes_meanwhile_is_not_published(root, access, keys, change: str, step: str):
    path = root / "samples" / "tiny" / NAME
    before = manifest_of(root)
    named = "another" if change == "joined" else NAME
    with pytest.raises(UserError) as caught:
        run(root, access, progress=Changing(step, lambda: CHANGES[change](path)))
    codes = {problem.code for problem in caught.value.problems}
    if (change, step) == ("deleted", "hashing begins"):
        assert codes == {Code.FILE_UNREADABLE}
    else:
        assert Code.FILES_CHANGED in codes
        first = caught.value.problems[0]
        assert first.message == f"samples/tiny changed while it was published: {named}"
    # No manifest, no lock, and nothing of the file that changed.
    assert not [key for key in keys() if key.endswith(("manifest.json", f"/{named}"))]
    assert not (root / "model_configs" / "tiny.lock.json").exists()
    path.with_name("another").unlink(missing_ok=True)
    path.write_bytes(CONTENT)
    assert run(root, access).digest == before.digest
    assert keys()[under(root, f"files/{NAME}")] == CONTENT
    require_right(keys())


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_a_change_that_the_clock_does_not_show_is_found(root, access, monkeypatch):
    # As on a file system whose times have a resolution of seconds.
    monkeypatch.setattr(
        manifests, "state_of", lambda entry: (entry.stat().st_size, *3 * (1 << 62,))
    )
    path = root / "samples" / "tiny" / NAME
    with pytest.raises(UserError, match=f"changed while it was published: {NAME}"):
        run(root, access, progress=Changing("uploading begins", lambda: path.write_bytes(OTHER)))


def test_what_was_sent_with_other_bytes_never_becomes_visible(root, access, keys, monkeypatch):
    """A file that changes while it is sent, and keeps its size and its times."""
    monkeypatch.setattr(manifests, "state_of", lambda entry: (entry.stat().st_size, *3 * (0,)))
    path = root / "samples" / "tiny" / NAME
    progress = Changing("uploading begins", lambda: path.write_bytes(OTHER))
    for _ in range(2):
        with pytest.raises(UserError) as caught:
            run(root, access, progress=progress)
        assert messages(caught.value) == [f"samples/tiny changed while it was published: {NAME}"]
        # S3's hash of it is not the manifest's.
        path.write_bytes(CONTENT)
        assert keys() == {under(root, "files/config.json"): b"{}"}
    uploads = access.client("s3").list_multipart_uploads(Bucket=LOCAL.artifact_bucket)
    assert uploads.get("Uploads", []) == []
    assert run(root, access).uploaded_bytes == len(CONTENT)
    require_right(keys())


@pytest.fixture
def client(access: Access) -> Any:
    return access.client("s3")


def put(client: Any, key: str, body: bytes, **options: Any) -> None:
    client.put_object(Bucket=LOCAL.artifact_bucket, Key=key, Body=body, **options)


def test_what_was_sent_wrongly_before_a_kill_is_sent_again(root, access, keys, monkeypatch):
    path = root / "samples" / "tiny" / NAME

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(manifests.Snapshot, "changed", kill)
    with pytest.raises(KeyboardInterrupt):
        run(root, access, progress=Changing("uploading begins", lambda: path.write_bytes(OTHER)))
    monkeypatch.undo()
    path.write_bytes(CONTENT)
    assert keys() == {}
    assert run(root, access).uploaded_bytes == len(CONTENT)
    require_right(keys())


@pytest.mark.parametrize("harm", ["deleted", "written", "added"])
def test_what_is_harmed_later_is_noticed_by_the_next_publish(root, access, keys, client, harm: str):
    run(root, access)
    place = {"Bucket": LOCAL.artifact_bucket, "Key": under(root, f"files/{NAME}")}
    progress = Progress()
    if harm == "added":
        put(client, under(root, "files/stray"), b"x")
        with pytest.raises(UserError, match="differs from the one sent, in: stray"):
            run(root, access, progress=progress)
        assert progress.notes == [f"Damaged in {LOCAL.artifact_bucket} since: stray."]
        return
    if harm == "deleted":
        client.delete_object(**place)
    else:
        client.put_object(**place, Body=OTHER)
        with pytest.raises(UserError, match=f"differs from the one sent, in: {NAME}"):
            run(root, access)
        client.delete_object(**place)
    # What was sent lies there for a day: S3 copies it once more.
    assert run(root, access, progress=progress).uploaded_bytes == 0
    assert progress.notes == [f"Damaged in {LOCAL.artifact_bucket} since: {NAME}."]
    require_right(keys())
    assert run(root, access).uploaded_bytes == 0


def test_verify_finds_what_a_forged_seal_hides(root, access, keys, client):
    run(root, access)
    put(client, under(root, f"files/{NAME}"), OTHER)
    objects = listed(client, LOCAL.artifact_bucket, under(root, "files/"))
    manifest = manifest_of(root).render()
    put(client, under(root, "manifest.json"), manifest, Metadata={SEAL: seal(objects)})
    assert run(root, access).uploaded_bytes == 0
    with pytest.raises(UserError, match=f"differs from the one sent, in: {NAME}"):
        run(root, access, verify=True)
    client.delete_object(Bucket=LOCAL.artifact_bucket, Key=under(root, f"files/{NAME}"))
    run(root, access, verify=True)
    require_right(keys())


def test_an_unchanged_artifact_takes_one_listing_and_verify_reads_all(root, access):
    run(root, access)
    ours = access.in_region(LOCAL.region)
    asked = Asked(ours)
    assert run(root, ours).uploaded_bytes == 0
    assert asked.names == ["HeadBucket", "HeadObject", "ListObjectsV2"]
    asked.keys.clear()
    assert run(root, ours, verify=True).uploaded_bytes == 0
    # The manifest and both files.
    assert asked.names.count("GetObject") == 3


def test_an_artifact_without_its_seal_is_compared_and_sealed(root, access, keys, client):
    run(root, access)
    put(client, under(root, "manifest.json"), manifest_of(root).render(), Metadata={SEAL: "none"})
    ours = access.in_region(LOCAL.region)
    asked = Asked(ours)
    assert run(root, ours).uploaded_bytes == 0
    # The manifest, and both files where the listing has no checksums, as moto's.
    assert asked.names.count("GetObject") in (1, 3)
    asked.keys.clear()
    run(root, ours)
    assert "GetObject" not in asked.names


def test_a_sha256_that_s3_keeps_spares_the_reading(root, access, client):
    put(client, under(root, f"files/{NAME}"), CONTENT, ChecksumAlgorithm="SHA256")
    put(client, under(root, "files/config.json"), b"[]", ChecksumAlgorithm="SHA256")
    ours = access.in_region(LOCAL.region)
    asked = Asked(ours)
    # Of the same size, with another hash.
    with pytest.raises(UserError, match=r"differs from the one sent, in: config\.json"):
        run(root, ours)
    assert asked.names.count("GetObject") == 1


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_keys_that_are_too_long_are_told_before_anything_is_sent(root, access, keys):
    folder = root / "samples" / "tiny" / ("d" * 250) / ("e" * 250) / ("f" * 250)
    for name, size in (("g" * 190, 1024), ("é" * 95 + "x", 1025), ("h" * 203, 1037)):
        write_files(folder, {name: b"x"})
        prefix = under(root, "files/")
        key = f"{prefix}{(folder / name).relative_to(root / 'samples' / 'tiny').as_posix()}"
        assert len(key.encode()) == size
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert [problem.remedy.rpartition(" by ")[2] for problem in caught.value.problems] == [
        "13 bytes.",
        "1 byte.",
    ]
    assert caught.value.problems[1].message.endswith("would have 1,025 bytes: S3 takes 1,024")
    assert keys() == {}
    for name in ("h" * 203, "é" * 95 + "x"):
        (folder / name).unlink()
    run(root, access)
    assert len(keys()) == 4


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_folders_without_files_are_told(root, access):
    (root / "samples" / "tiny" / "empty" / "deeper").mkdir(parents=True)
    (root / "samples" / "tiny" / "other").mkdir()
    write_files(root / "samples/tiny", {"full/deeper/file": b"x"})
    progress = Progress()
    run(root, access, progress=progress)
    assert progress.notes == ["S3 keeps no empty folders. samples/tiny has: empty/deeper/, other/"]


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_private_folders_are_not_published(root, access, keys):
    names = (".git/config", "sub/.git", ".slipway/state.json")
    write_files(root / "samples/tiny", dict.fromkeys(names, "https://user:token@example.com"))
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert {problem.code for problem in caught.value.problems} == {Code.SYMBOLIC_LINK}
    assert [message.split()[0] for message in messages(caught.value)] == [
        "samples/tiny/.git",
        "samples/tiny/.slipway",
        "samples/tiny/sub/.git",
    ]
    assert keys() == {}


def linked(root: Path) -> Path:
    """Makes the model's folder a link to a folder beside the project."""
    outside = root.parent / f"{root.name}-outside"
    (root / "samples" / "tiny").rename(outside)
    (root / "samples" / "tiny").symlink_to(outside)
    return outside


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_a_link_out_of_the_project_needs_this_machines_permission(root, access, keys, monkeypatch):
    outside = linked(root)
    with pytest.raises(UserError) as caught:
        run(root, access)
    (problem,) = caught.value.problems
    assert problem.message.endswith(f"samples/tiny leads out of the project, to {outside}")
    assert problem.remedy.endswith(f"set SLIPWAY_ALLOW_OUTSIDE={outside}.")
    assert problem.location is not None
    assert keys() == {}
    monkeypatch.setenv("SLIPWAY_ALLOW_OUTSIDE", f"/nowhere{os.pathsep}{outside.parent}")
    assert run(root, access).file_count == 2


@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
@pytest.mark.parametrize("link", ["build/mine", ".git"])
def test_a_link_within_the_project_may_not_lead_to_git(root, access, keys, link: str):
    (root / ".git").mkdir()
    (root / "build").mkdir()
    (root / "build" / "mine").symlink_to(root / ".git")
    path = root / "model_configs" / "tiny.yaml"
    path.write_text(path.read_text("utf-8").replace("samples/tiny", link), "utf-8")
    with pytest.raises(UserError, match=f"{link} leads into .git, whose files belong to no model"):
        run(root, access)
