"""A promotion copies an artifact's files, verified, by each way that S3 and credentials allow."""

import hashlib
import threading
from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.project import Project
from slipway.publishing import verified_copies
from tests.publishing import promotions
from tests.publishing.checkpoints import safetensors
from tests.publishing.progress import Asked
from tests.publishing.promotions import FILES, STAGING, contents, refusal, run, weights_key
from tests.support.projects import PRODUCTION

pytestmark = pytest.mark.usefixtures("checkpoint", "small_limit")

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


def published(root: Path, access: Access) -> None:
    """Publishes, and stores the model without a SHA-256, as an earlier Slipway did.

    versitygw answers the SHA-256 that the source has, where it has one, and S3 that of the copy.
    """
    promotions.published(root, access)
    key, body = "files/model.safetensors", root / "build/checkpoint/model.safetensors"
    place = {"Bucket": STAGING.artifact_bucket, "Key": weights_key(root, key)}
    access.client("s3").put_object(**place, Body=body.read_bytes())


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, set[str]]:
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
    weights = weights_key(root, "files/")
    made = {operation for operation, key in written.keys if key.startswith(weights)}
    assert made & writing == operations
    # S3 tells the hash of what it copies: nothing of the file comes here.
    is_read = ("GetObject", weights_key(root, "files/model.safetensors")) in read.keys
    assert is_read is ("UploadPartCopy" not in operations)
    # The credentials of the source are never asked to write.
    assert {*read.names} <= {"GetObject", "HeadObject", "ListObjectsV2"}


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
    body = safetensors(bytes(range(256)) * (21 << 10))
    (root / "build/checkpoint/model.safetensors").write_bytes(body)
    published(root, account)
    source = account.in_region(account._region)
    written, read = Asked(account), Asked(source)
    run(root, account, source_access=source, within_s3=False)
    key = weights_key(root, "files/model.safetensors")
    assert contents(account, PRODUCTION)[key] == body
    assert written.keys.count(("UploadPart", key)) == 2
    assert read.keys.count(("GetObject", key)) == 1


def test_a_wrong_file_of_the_target_is_named(root: Path, account: Access) -> None:
    published(root, account)
    client, bucket = account.client("s3"), PRODUCTION.artifact_bucket
    for name, body in FILES.items():
        wrong = body[::-1] if name == "model.safetensors" else body
        client.put_object(Bucket=bucket, Key=weights_key(root, f"files/{name}"), Body=wrong)
    with pytest.raises(UserError, match=r"differs from the one sent, in: model\.safetensors"):
        run(root, account)
    client.delete_object(Bucket=bucket, Key=weights_key(root, "files/model.safetensors"))
    run(root, account)
    assert (
        contents(account, PRODUCTION)[weights_key(root, "files/model.safetensors")]
        == (FILES["model.safetensors"])
    )
    # S3 keeps the SHA-256 of what was copied: nothing of it is read to compare it again.
    client.delete_object(Bucket=bucket, Key=weights_key(root, "manifest.json"))
    again = account.in_region(account._region)
    asked = Asked(again)
    run(root, again, source_access=account)
    assert ("GetObject", weights_key(root, "files/model.safetensors")) not in asked.keys
    assert "UploadPartCopy" not in asked.names


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
    every = [item["Key"] for item in client.list_objects_v2(Bucket=bucket)["Contents"]]
    for each in every if is_bucket_gone else [key]:
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
