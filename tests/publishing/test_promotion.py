"""Promotion: production gets the bytes that staging tested, verified, or nothing."""

import hashlib
import json
import threading
from pathlib import Path
from typing import Any

import pytest

from slipway import java_properties
from slipway.access import Access
from slipway.config.environments import Environment
from slipway.errors import UserError
from slipway.operations.promotion_permissions import promotion_policy
from slipway.planning.artifact_place import artifact_place
from slipway.project import Project
from slipway.publishing import verified_copies
from slipway.publishing.promotion import promote
from slipway.publishing.publish import Published, publish
from tests.publishing.progress import Progress
from tests.support.command_line import Run
from tests.support.projects import PRODUCTION, config_text, write_project
from tests.support.recorded_calls import RecordedCalls

STAGING = PRODUCTION.model_copy(update={"name": "staging"})
ENVIRONMENTS = """\
staging:
  account: "210987654321"
  region: eu-west-1
  notification_emails: [on-call@example.com]
production:
  account: "210987654321"
  region: eu-west-1
  notification_emails: [on-call@example.com]
"""
SERVING = """\
  container: tensorrt
  max_batch_size: 8
  max_input_tokens: 64
  max_new_tokens: 42
  default_new_tokens: 12
"""
LMI = (
    SERVING,
    "  container: lmi\n  framework: djl-lmi\n  version: 0.36.0\n  dtype: fp16\n"
    "  max_input_tokens: 64\n  max_new_tokens: 42\n",
)
WEIGHTS = (
    "  release:\n    path: build/tiny\n    target: sm75\n",
    "  weights:\n    source: path\n    path: build/checkpoint\n",
)
NO_ISOLATION = ("  instance_count: 2\n", "  instance_count: 2\n  network_isolation: false\n")
# The limit of a small file, in these tests.
SMALL_BYTES = 100_000
FILES = {
    "config.json": b"{}",
    "empty": b"",
    "model.safetensors": bytes(range(256)) * 2048,
    "sub/ünï 雪.txt": b"name",
}


@pytest.fixture(autouse=True)
def _small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified_copies, "_SMALL_BYTES", SMALL_BYTES)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    text = config_text("tiny", LMI, WEIGHTS, NO_ISOLATION)
    write_project(tmp_path, {"tiny": text}, environments=ENVIRONMENTS)
    for name, body in FILES.items():
        path = tmp_path / "build/checkpoint" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)
    return tmp_path


@pytest.fixture
def account(access: Access) -> Access:
    """An account with the buckets of both environments."""
    for environment in (STAGING, PRODUCTION):
        access.client("s3").create_bucket(Bucket=environment.artifact_bucket)
    return access


def contents(access: Access, environment: Environment) -> dict[str, bytes]:
    client, bucket = access.client("s3"), environment.artifact_bucket
    found = client.list_objects_v2(Bucket=bucket).get("Contents", ())
    return {
        item["Key"]: client.get_object(Bucket=bucket, Key=item["Key"])["Body"].read()
        for item in found
    }


def run(root: Path, access: Access, progress: Progress | None = None, **options: Any) -> Published:
    options = {"source": STAGING, "source_access": access, "within_s3": True} | options
    return promote(Project(root), "tiny", PRODUCTION, access, progress or Progress(), **options)


def refusal(root: Path, access: Access, **options: Any) -> list[tuple[str, str]]:
    with pytest.raises(UserError) as caught:
        run(root, access, **options)
    return [(problem.message, problem.remedy) for problem in caught.value.problems]


def published(root: Path, access: Access) -> Published:
    return publish(Project(root), "tiny", STAGING, access, Progress())


def weights_key(root: Path, name: str) -> str:
    locked = (Project(root).lock("tiny").environments or {})["staging"]
    assert locked.weights is not None
    return f"artifacts/{locked.weights.digest}/{name}"


def test_production_gets_the_bytes_and_its_own_package(root: Path, account: Access) -> None:
    tested = published(root, account)
    progress = Progress()
    result = run(root, account, progress)
    before, after = contents(account, STAGING), contents(account, PRODUCTION)
    package = f"artifacts/{tested.digest}/files/serving.properties"
    assert {key: body for key, body in before.items() if key != package} == {
        key: body for key, body in after.items() if key != package
    }
    properties = java_properties.parse(after[package])
    assert properties["option.model_id"] == (
        f"s3://{PRODUCTION.artifact_bucket}/{weights_key(root, 'files/')}"
    )
    lock = Project(root).lock("tiny").environments or {}
    assert lock["production"] == lock["staging"]
    size_bytes = sum(map(len, FILES.values()))
    assert progress.totals[0] == ("copying", size_bytes)
    assert result == Published(
        digest=tested.digest,
        size_bytes=tested.size_bytes,
        file_count=1,
        source="the config",
        target="any",
        weights_digest=tested.weights_digest,
        uploaded_bytes=size_bytes + len(after[package]),
        lock_changed=True,
        promoted_from="staging",
    )
    assert Project(root).plan("tiny", PRODUCTION).artifact.digest == tested.digest


def test_a_second_promotion_moves_nothing(root: Path, account: Access) -> None:
    published(root, account)
    run(root, account)
    progress = Progress()
    again = run(root, account, progress)
    assert (again.uploaded_bytes, again.lock_changed, progress.totals) == (
        0, False, [("copying", 0), ("uploading", 0)],
    )  # fmt: skip


def test_a_stopped_promotion_goes_on_and_leaves_no_manifest(root: Path, account: Access) -> None:
    published(root, account)

    class Stopped(Progress):
        def advance(self, size_bytes: int) -> None:
            super().advance(size_bytes)
            if size_bytes > SMALL_BYTES:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(root, account, Stopped())
    assert "production" not in (Project(root).lock("tiny").environments or {})
    arrived = contents(account, PRODUCTION)
    assert weights_key(root, "files/model.safetensors") in arrived
    assert not [key for key in arrived if key.endswith("manifest.json")]
    progress = Progress()
    result = run(root, account, progress)
    assert progress.totals[0][1] < SMALL_BYTES
    assert result.lock_changed is True


ROUTES: dict[str, tuple[dict[str, int], bool, set[str]]] = {
    "through memory": ({"_SMALL_BYTES": 1 << 20}, True, {"PutObject"}),
    "as one part": ({}, True, {"PutObject", "UploadPartCopy", "CompleteMultipartUpload"}),
    "read first": ({"_LARGEST_PART_BYTES": 0}, True, {"PutObject", "CopyObject"}),
    "as a stream": (
        {},
        False,
        {"PutObject", "UploadPart", "CompleteMultipartUpload"},
    ),
}


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, set[str]]:
    """Each way that a large file can take: whether S3 copies, and the requests that write."""
    limits, within_s3, operations = ROUTES[request.param]
    for name, value in limits.items():
        monkeypatch.setattr(verified_copies, name, value)
    return within_s3, operations


def test_each_way_brings_the_same_bytes(
    root: Path, account: Access, route: tuple[bool, set[str]]
) -> None:
    within_s3, operations = route
    published(root, account)
    source = account.in_region(account._region)
    written, read = Asked(account), Asked(source)
    run(root, account, source_access=source, within_s3=within_s3)
    arrived = contents(account, PRODUCTION)
    for name, body in FILES.items():
        assert arrived[weights_key(root, f"files/{name}")] == body
    writing = {"PutObject", "CopyObject", "UploadPart", "UploadPartCopy", "CompleteMultipartUpload"}
    assert written.operations & writing == operations
    # S3 tells the hash of what it copies: nothing of the file comes here.
    is_read = ("GetObject", weights_key(root, "files/model.safetensors")) in read.keys
    assert is_read is ("UploadPartCopy" not in operations)
    # The credentials of the source are never asked to write.
    assert read.operations <= {"GetObject", "HeadObject", "ListObjectsV2"}


class Asked:
    """The requests about objects that one access makes."""

    def __init__(self, access: Access) -> None:
        self.operations: set[str] = set()
        self.keys: list[tuple[str, str]] = []
        access._session.events.register("before-parameter-build.s3", self._note)

    def _note(self, model: Any, params: dict[str, Any], **_: Any) -> None:
        key = str(params.get("Key", ""))
        if not key.endswith("manifest.json"):
            self.operations.add(model.name)
            self.keys.append((model.name, key))


def test_a_damaged_object_never_arrives(
    root: Path, account: Access, route: tuple[bool, set[str]]
) -> None:
    published(root, account)
    client, key = account.client("s3"), weights_key(root, "files/model.safetensors")
    body = b"x" + FILES["model.safetensors"][1:]
    client.put_object(Bucket=STAGING.artifact_bucket, Key=key, Body=body)
    address = f"s3://{STAGING.artifact_bucket}/{weights_key(root, '')}"
    assert refusal(root, account, within_s3=route[0]) == [
        (
            f"the artifact {address} is damaged: model.safetensors has another SHA-256",
            f"Delete it with `aws s3 rm --recursive {address}`. Run `slipway publish tiny --env "
            "staging`, and test again.",
        )
    ]
    arrived = contents(account, PRODUCTION)
    assert key not in arrived
    assert not [each for each in arrived if each.endswith("manifest.json")]
    uploads = client.list_multipart_uploads(Bucket=PRODUCTION.artifact_bucket)
    assert uploads.get("Uploads", []) == []
    assert "production" not in (Project(root).lock("tiny").environments or {})


def test_an_object_that_is_replaced_after_the_listing_never_arrives(
    root: Path, account: Access, route: tuple[bool, set[str]]
) -> None:
    published(root, account)
    client, key = account.client("s3"), weights_key(root, "files/model.safetensors")
    target = account.in_region(account._region)
    is_replaced = threading.Lock()

    def replace(model: Any, params: dict[str, Any], **_: Any) -> None:
        reads = model.name in ("GetObject", "UploadPartCopy", "CopyObject")
        if reads and params["Key"] == key and is_replaced.acquire(blocking=False):
            client.put_object(
                Bucket=STAGING.artifact_bucket, Key=key, Body=b"x" * len(FILES["model.safetensors"])
            )

    target._session.events.register("before-parameter-build.s3", replace)
    ((message, remedy),) = refusal(root, target, source_access=target, within_s3=route[0])
    assert message.startswith(f"the artifact in {STAGING.artifact_bucket}")
    assert "could not be copied: " in message
    assert remedy == "Run the command again: files that arrived are not copied again."
    assert key not in contents(account, PRODUCTION)


def test_a_stream_has_parts_and_is_read_once(
    root: Path, account: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    # S3 takes no smaller part but the last.
    monkeypatch.setattr(verified_copies, "_STREAMED_PART_BYTES", 5 << 20)
    body = bytes(range(256)) * (21 << 10)
    (root / "build/checkpoint/model.safetensors").write_bytes(body)
    published(root, account)
    source = account.in_region(account._region)
    written, read = Asked(account), Asked(source)
    run(root, account, source_access=source, within_s3=False)
    key = weights_key(root, "files/model.safetensors")
    assert contents(account, PRODUCTION)[key] == body
    assert written.keys.count(("UploadPart", key)) == 2
    assert read.keys.count(("GetObject", key)) == 1


def test_missing_and_short_files_are_told_together(root: Path, account: Access) -> None:
    published(root, account)
    client, bucket = account.client("s3"), STAGING.artifact_bucket
    client.delete_object(Bucket=bucket, Key=weights_key(root, "files/config.json"))
    client.put_object(Bucket=bucket, Key=weights_key(root, "files/empty"), Body=b"not")
    assert [message.partition(" is damaged: ")[2] for message, _ in refusal(root, account)] == [
        "config.json is missing",
        "empty has 3 bytes instead of 0",
    ]


def test_a_changed_manifest_is_refused(root: Path, account: Access) -> None:
    published(root, account)
    key = weights_key(root, "manifest.json")
    account.client("s3").put_object(Bucket=STAGING.artifact_bucket, Key=key, Body=b"{}")
    ((message, _),) = refusal(root, account)
    assert message.endswith("is damaged: manifest.json has another SHA-256")


@pytest.mark.parametrize("is_bucket_gone", [False, True])
def test_an_artifact_that_is_gone_is_published_again(
    root: Path, account: Access, is_bucket_gone: bool
) -> None:
    published(root, account)
    client, bucket = account.client("s3"), STAGING.artifact_bucket
    key = weights_key(root, "manifest.json")
    for each in contents(account, STAGING) if is_bucket_gone else [key]:
        client.delete_object(Bucket=bucket, Key=each)
    if is_bucket_gone:
        client.delete_bucket(Bucket=bucket)
    digest = key.split("/")[1]
    assert refusal(root, account) == [
        (
            f"the lock names the artifact {digest}, and there is no s3://{bucket}/{key}",
            "Run `slipway publish tiny --env staging`, and test again.",
        )
    ]


def test_credentials_that_may_not_read_are_told_of_the_profile(root: Path, account: Access) -> None:
    published(root, account)
    variables = {**account._variables, "AWS_SECRET_ACCESS_KEY": "another"}
    stranger = Access(account._region, variables)
    assert refusal(root, account, source_access=stranger, within_s3=False) == [
        (
            f"the artifact in {STAGING.artifact_bucket} may not be read: SignatureDoesNotMatch",
            "Name a profile that may read it with `--from-profile`, or give these credentials the "
            "rights that `slipway iam NAME --env TARGET --from TESTED` prints.",
        )
    ]


def test_a_changed_script_is_another_package(root: Path, account: Access) -> None:
    scripted = (LMI[0], f"{LMI[1]}  script: handlers/tiny\n")
    path = root / "model_configs/tiny.yaml"
    path.write_text(config_text("tiny", scripted, WEIGHTS, NO_ISOLATION), "utf-8")
    handler = root / "handlers/tiny/model.py"
    handler.parent.mkdir(parents=True)
    handler.write_text("def handle(inputs): ...\n")
    published(root, account)
    handler.write_text("def handle(inputs): return 1\n")
    assert refusal(root, account) == [
        (
            "the package of code that this checkout makes is not the one published to `staging`",
            "Check out the commit that was published to `staging`, or run `slipway publish tiny "
            "--env staging` and test again.",
        )
    ]
    assert contents(account, PRODUCTION) == {}


def test_an_artifact_of_files_keeps_its_one_entry_in_the_lock(root: Path, account: Access) -> None:
    (root / "model_configs/tiny.yaml").write_text(config_text("tiny"), "utf-8")
    (root / "build/tiny").mkdir()
    (root / "build/tiny/model.plan").write_bytes(b"engine")
    tested = published(root, account)
    result = run(root, account)
    assert (result.digest, result.lock_changed) == (tested.digest, False)
    assert contents(account, PRODUCTION) == contents(account, STAGING)


def test_the_policy_is_what_a_promotion_needs(root: Path, account: Access) -> None:
    published(root, account)
    access = account.in_region(account._region)
    recorded = RecordedCalls(access, f"{PRODUCTION.region}:{PRODUCTION.account}")
    run(root, access)
    # A damaged file, so that an upload is given up.
    client = account.client("s3")
    for key in contents(account, PRODUCTION):
        client.delete_object(Bucket=PRODUCTION.artifact_bucket, Key=key)
    key = weights_key(root, "files/model.safetensors")
    body = b"x" + FILES["model.safetensors"][1:]
    client.put_object(Bucket=STAGING.artifact_bucket, Key=key, Body=body)
    refusal(root, access)
    config = Project(root).config("tiny", "production").config
    policy = promotion_policy(
        PRODUCTION,
        artifact_place(config, PRODUCTION),
        source=STAGING,
        source_place=artifact_place(config, STAGING),
        has_recipes=False,
    )
    assert recorded.denied_by(policy) == set()
    assert recorded.unused_of(policy) == set()


def test_the_command_promotes(
    root: Path,
    account: Access,
    monkeypatch: pytest.MonkeyPatch,
    slipway_command: Run,
) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setattr("slipway.access.open_access", lambda *_: account)
    size = f"{published(root, account).size_bytes} bytes in 1 file"
    promotion = ("publish", "tiny", "--env", "production", "--from", "staging")
    code, output, errors = slipway_command(*promotion)
    assert (code, errors) == (0, "")
    first, _, _, last = output.splitlines()
    assert first == f"Promoted tiny from staging to production: {size}, 524.6 kB copied."
    assert last == "model_configs/tiny.lock.json changed: commit it."
    code, output, _ = slipway_command(*promotion, "--json")
    told = json.loads(output)
    assert (code, told["promoted_from"], told["uploaded_bytes"]) == (0, "staging", 0)
    code, output, _ = slipway_command(*promotion[:1], "--all", *promotion[2:])
    assert (code, output.splitlines()[0]) == (
        0,
        f"Promoted tiny from staging to production: {size}, nothing to copy, it was all there.",
    )


def test_copies_are_the_manifests_files_alone(root: Path, account: Access) -> None:
    published(root, account)
    client = account.client("s3")
    stray = weights_key(root, "files/stray")
    client.put_object(Bucket=STAGING.artifact_bucket, Key=stray, Body=b"stray")
    run(root, account)
    arrived = contents(account, PRODUCTION)
    assert stray not in arrived
    manifest = arrived[weights_key(root, "manifest.json")]
    assert hashlib.sha256(manifest).hexdigest() in stray
