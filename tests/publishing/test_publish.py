"""Publishing against a real S3 API: resumable, the manifest after the files, the lock last."""

import hashlib
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.config import Config
from botocore.credentials import ReadOnlyCredentials
from botocore.hooks import HierarchicalEmitter

from slipway.access import Access
from slipway.errors import UserError
from slipway.planning.artifact_place import shared_place
from slipway.planning.lock import Lock
from slipway.project import Project
from slipway.publishing.publish import Published
from slipway.publishing.store import ArtifactStore
from tests.publishing.progress import Progress, manifest_of, run
from tests.support.deployments import digest_of
from tests.support.projects import (
    LOCAL,
    PRODUCTION,
    config_text,
    messages,
    write_files,
    write_project,
)

SIZE = 4096 + 2


def lock_file(root: Path) -> Path:
    return root / "model_configs" / "tiny.lock.json"


def test_files_manifest_and_lock_are_written(root, access, keys):
    progress = Progress()
    result = run(root, access, progress=progress)
    manifest = manifest_of(root)
    prefix = f"artifacts/{manifest.digest}"
    found = keys()
    assert found == {
        f"{prefix}/files/config.json": b"{}",
        f"{prefix}/files/model.onnx": bytes(range(256)) * 16,
        f"{prefix}/manifest.json": manifest.render(),
    }
    # Whoever has only the bucket can check it.
    assert hashlib.sha256(found[f"{prefix}/manifest.json"]).hexdigest() == manifest.digest
    assert result == Published(
        digest=manifest.digest,
        size_bytes=SIZE,
        file_count=2,
        source="samples/tiny",
        target="cpu",
        weights_digest=None,
        uploaded_bytes=SIZE,
        lock_changed=True,
    )
    assert (progress.uploads, progress.notes) == (([SIZE], [2, 4096]), [])
    locked = Project(root).lock("tiny").sample
    assert locked is not None
    assert locked.inputs_digest == digest_of(Project(root).config("tiny", "local").config, "sample")
    assert locked.compiled.model_dump() == {
        "digest": manifest.digest,
        "size_bytes": SIZE,
        "file_count": 2,
        "source": "samples/tiny",
        "target": "cpu",
        "compiler": None,
    }
    assert Project(root).plan("tiny", LOCAL).artifact.digest == manifest.digest


def test_a_second_publish_moves_nothing_and_leaves_the_lock_alone(root, access):
    run(root, access)
    before = lock_file(root).stat()
    progress = Progress()
    result = run(root, access, progress=progress)
    assert (result.uploaded_bytes, result.lock_changed) == (0, False)
    assert progress.uploads == ([0], [])
    after = lock_file(root).stat()
    assert (after.st_mtime_ns, after.st_ino) == (before.st_mtime_ns, before.st_ino)


def test_two_publishes_at_once_give_one_artifact_and_one_lock(root, access, keys):
    for number in range(20):
        (root / "samples" / "tiny" / f"{number}.bin").write_bytes(bytes(number + 1))
    together = threading.Barrier(2)

    def publish_together(_: int) -> Published:
        together.wait()
        return run(root, access)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(publish_together, range(2))
    assert first.digest == second.digest == manifest_of(root).digest
    prefix = f"artifacts/{first.digest}"
    assert len(keys()) == 23
    assert keys()[f"{prefix}/manifest.json"] == manifest_of(root).render()
    assert all(key.startswith(f"{prefix}/") for key in keys())
    assert Project(root).lock("tiny").sample.compiled.digest == first.digest
    assert run(root, access).uploaded_bytes == 0
    # Nothing unfinished is left beside the lock.
    assert list((root / ".slipway").glob("*.lock.json.*")) == []


def test_a_lost_lock_is_written_again_byte_for_byte(root, access):
    run(root, access)
    before = lock_file(root).read_bytes()
    lock_file(root).unlink()
    result = run(root, access)
    assert (result.uploaded_bytes, result.lock_changed) == (0, True)
    assert (
        lock_file(root).read_bytes() == before == Lock.model_validate_json(before).render().encode()
    )
    assert oct(lock_file(root).stat().st_mode & 0o777) == "0o644"
    # Nothing temporary stays beside it.
    assert sorted(path.name for path in lock_file(root).parent.iterdir()) == [
        "tiny.lock.json", "tiny.yaml",
    ]  # fmt: skip


POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def test_files_that_are_no_whole_model_are_refused_before_anything_is_sent(root, access, keys):
    sample = root / "samples" / "tiny"
    (sample / "model.onnx").write_bytes(POINTER)
    (sample / "config.json").unlink()
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert messages(caught.value) == [
        "samples/tiny/model.onnx is a pointer of Git LFS in place of the file",
        "samples/tiny has no config.json",
    ]
    assert {problem.field for problem in caught.value.problems} == {("artifacts", "sample", "path")}
    assert all(problem.location for problem in caught.value.problems)
    assert keys() == {}
    assert not lock_file(root).exists()


def test_the_file_that_is_the_model_data_must_be_among_the_files(tmp_path, access, keys):
    image = "123456789012.dkr.ecr.us-east-1.amazonaws.com/search:1"
    serving = f"serving:\n  container: custom\n  image_uri: {image}\n  model_data_object: "
    before, _, rest = config_text("tiny").partition("serving:\n")
    after = f"artifacts:{rest.partition('artifacts:')[2]}"
    root = write_project(tmp_path, {"tiny": f"{before}{serving}model.tar.gz\n{after}"})
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert messages(caught.value) == ["the artifact has no file model.tar.gz"]
    assert keys() == {}
    config = root / "model_configs" / "tiny.yaml"
    config.write_text(f"{before}{serving}model.onnx\n{after}", encoding="utf-8")
    run(root, access)
    artifact = Project(root).plan("tiny", LOCAL).artifact
    assert artifact.data_uri == f"{artifact.s3_uri}model.onnx"


def test_after_a_failed_upload_there_is_neither_manifest_nor_lock(root, access, keys):
    missing = root / "samples" / "tiny" / "model.onnx"

    class LosesAFile(Progress):
        """Between hashing and sending, one file goes."""

        def start(self, total_bytes: int, activity: str = "uploading") -> None:
            if activity == "uploading":
                missing.unlink()

    with pytest.raises(UserError, match=r"an upload failed: given object .*model\.onnx not found"):
        run(root, access, progress=LosesAFile())
    assert keys() == {}
    assert not lock_file(root).exists()
    # The file is back: the rest is sent, and what arrived is not.
    missing.write_bytes(bytes(range(256)) * 16)
    progress = Progress()
    assert run(root, access, progress=progress).uploaded_bytes == 4096
    assert progress.uploads == ([4096], [4096])
    assert lock_file(root).exists()


def test_the_manifest_is_the_last_object_and_the_lock_comes_after_it(root, access, keys):
    seen: list[tuple[list[str], bool]] = []

    class Recording(Access):
        """Notes, at each write of boto3's, what was there before it."""

        def __init__(self) -> None:
            """Borrows the fixture's session."""

        def credentials(self) -> ReadOnlyCredentials:
            return access.credentials()

        def process_environment(self) -> dict[str, str]:
            return access.process_environment()

        def client(self, service: str, config: Config | None = None) -> Any:
            client = access.client(service, config)
            client.meta.events.register(
                "before-call.s3.PutObject",
                lambda **_: seen.append((sorted(keys()), lock_file(root).exists())),
            )
            return client

    run(root, Recording())
    prefix = f"artifacts/{manifest_of(root).digest}/files"
    assert seen == [([f"{prefix}/config.json", f"{prefix}/model.onnx"], False)]


def test_a_file_that_does_not_belong_stops_the_commit(root, access, keys):
    prefix = f"artifacts/{manifest_of(root).digest}"
    access.client("s3").put_object(
        Bucket=LOCAL.artifact_bucket, Key=f"{prefix}/files/intruder", Body=b"x"
    )
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert messages(caught.value) == [
        f"the artifact in {LOCAL.artifact_bucket} differs from the one sent, in: intruder"
    ]
    assert caught.value.problems[0].remedy == (
        "No object of an artifact is overwritten. Delete each that is named, for example with "
        f"`aws s3 rm 's3://{LOCAL.artifact_bucket}/{prefix}/files/intruder'`, and run the command "
        "again."
    )
    assert f"{prefix}/manifest.json" not in keys()
    assert not lock_file(root).exists()


def test_without_the_bucket_the_remedy_is_the_foundation(root, access):
    access.client("s3").delete_bucket(Bucket=LOCAL.artifact_bucket)
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert str(caught.value) == (
        "1 problem\n"
        "- the artifact bucket slipway-local-123456789012-us-east-1 is not there [SW506]\n"
        "    Run `cdk deploy foundation -c env=local` first."
    )
    access.client("s3").create_bucket(Bucket=LOCAL.artifact_bucket)


# versitygw has one region.
@pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)
def test_a_release_and_a_sample_share_one_lock(root, access):
    access.client("s3").create_bucket(
        Bucket=PRODUCTION.artifact_bucket,
        CreateBucketConfiguration={"LocationConstraint": "eu-west-1"},
    )
    write_files(root, {"build/tiny/model.engine": b"engine"})
    run(root, access)
    sample = json.loads(lock_file(root).read_text())["sample"]
    run(root, access, PRODUCTION)
    lock = json.loads(lock_file(root).read_text())
    assert lock["sample"] == sample
    assert lock["release"]["compiled"]["target"] == "sm75"
    assert lock["release"]["compiled"]["source"] == "build/tiny"


def test_a_release_that_is_not_configured_is_refused_with_its_place(tmp_path, access):
    release = "  release:\n    path: build/tiny\n    target: sm75\n"
    root = write_project(tmp_path, {"tiny": config_text("tiny", (release, ""))})
    with pytest.raises(UserError) as caught:
        run(root, access, PRODUCTION)
    assert str(caught.value).startswith(
        "1 problem\n- model_configs/tiny.yaml:15:1: artifacts: environment `production` deploys "
        "the release, and there is none [SW318]\n"
    )


def test_a_bucket_of_somebody_elses_is_told_from_a_missing_one():
    class Denied:
        """S3's answer to a bucket one may not see."""

        meta = SimpleNamespace(events=HierarchicalEmitter())

        def head_bucket(self, **_: Any) -> None:
            from botocore.exceptions import ClientError

            raise ClientError({"Error": {"Code": "403", "Message": "Forbidden"}}, "HeadBucket")

    access = SimpleNamespace(client=lambda *_: Denied())
    with pytest.raises(UserError, match="cannot be reached: 403") as caught:
        ArtifactStore(access, LOCAL, shared_place(LOCAL), Progress()).require_bucket()
    assert caught.value.problems[0].remedy == (
        "Use credentials of account 123456789012 that may read and write the bucket."
    )
