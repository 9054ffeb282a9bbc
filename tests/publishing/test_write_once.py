"""Artifacts are write-once: the foundation's bucket policy, and what publishing does under it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from boto3.s3.transfer import TransferConfig
from botocore.exceptions import ClientError

from slipway.access import Access
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.errors import UserError
from slipway.planning.artifact_place import own_place, shared_place
from slipway.publishing import store, verified_copies
from slipway.publishing.directory import publish_files
from slipway.publishing.manifest import Snapshot
from slipway.publishing.objects import publish_objects
from slipway.publishing.store import ArtifactStore
from slipway.publishing.stored import listed
from slipway.s3_address import S3Address
from tests.publishing.progress import Progress
from tests.publishing.promotions import STAGING, contents, published, weights_key
from tests.publishing.promotions import run as promote
from tests.support.projects import LOCAL, PRODUCTION, write_files

pytestmark = pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)

BUCKET = LOCAL.artifact_bucket
KEYS = ("artifacts/d/files/a", "models/tiny/artifacts/d/files/a")
MANIFESTS = ("artifacts/d/manifest.json", "models/tiny/artifacts/d/manifest.json")
GOLDEN = Path(__file__).parents[1] / "golden" / "templates" / "foundation.json"


def bucket_policy(bucket: str) -> str:
    """The policy of the artifact bucket in the foundation's golden template."""
    (document,) = [
        resource["Properties"]["PolicyDocument"]
        for name, resource in json.loads(GOLDEN.read_text())["Resources"].items()
        if resource["Type"] == "AWS::S3::BucketPolicy" and name.startswith("Artifacts")
    ]

    def resolved(value: Any) -> Any:
        if isinstance(value, list):
            return [resolved(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "Fn::GetAtt" in value:
            return f"arn:aws:s3:::{bucket}"
        if "Fn::Join" in value:
            return "".join(map(str, resolved(value["Fn::Join"][1])))
        if "Ref" in value:
            return {"AWS::Partition": "aws", "AWS::AccountId": ACCOUNT_ID}[value["Ref"]]
        return {name: resolved(item) for name, item in value.items()}

    return json.dumps(resolved(document))


def guard(client: Any, bucket: str) -> None:
    versions = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket=bucket, VersioningConfiguration=versions)
    client.put_bucket_policy(Bucket=bucket, Policy=bucket_policy(bucket))


@pytest.fixture
def client(access: Access) -> Any:
    """A plain client, of a bucket with the foundation's policy."""
    made = access.client("s3")
    guard(made, BUCKET)
    return made


def answer(call: Callable[..., object], **arguments: Any) -> tuple[int, str]:
    try:
        call(**arguments)
    except ClientError as error:
        status = error.response["ResponseMetadata"]["HTTPStatusCode"]
        return status, error.response["Error"]["Code"]
    return 200, ""


def in_parts(client: Any, key: str, *, body: bytes = b"new", **condition: str) -> tuple[int, str]:
    place = {"Bucket": BUCKET, "Key": key}
    begun = client.create_multipart_upload(**place)
    upload_id = {"UploadId": begun["UploadId"]}
    part = client.upload_part(**place, **upload_id, PartNumber=1, Body=body)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    complete = client.complete_multipart_upload
    return answer(complete, **place, **upload_id, MultipartUpload=parts, **condition)


@pytest.mark.parametrize("key", KEYS)
def test_each_way_to_write_a_file_needs_the_condition_and_keeps_what_lies_there(client, key: str):
    place = {"Bucket": BUCKET, "Key": key}
    client.put_object(Bucket=BUCKET, Key="compile/source", Body=b"new")
    source = {"Bucket": BUCKET, "Key": "compile/source"}
    ways: tuple[Callable[..., tuple[int, str]], ...] = (
        lambda **condition: answer(client.put_object, **place, Body=b"new", **condition),
        lambda **condition: answer(client.copy_object, **place, CopySource=source, **condition),
        lambda **condition: in_parts(client, key, **condition),
    )
    for write in ways:
        assert write() == (403, "AccessDenied")
        assert write(IfNoneMatch="*") == (200, "")
        assert write(IfNoneMatch="*") == (412, "PreconditionFailed")
        etag = client.head_object(**place)["ETag"]
        assert write(IfMatch=etag) == (403, "AccessDenied")
        # What was deleted may be written again: a delete marker is no object.
        client.delete_object(**place)


@pytest.mark.parametrize("key", MANIFESTS)
def test_a_manifest_is_renewed_by_its_etag_alone(client, key: str):
    place = {"Bucket": BUCKET, "Key": key}
    assert answer(client.put_object, **place, Body=b"1") == (403, "AccessDenied")
    client.put_object(**place, Body=b"1", IfNoneMatch="*")
    etag = client.head_object(**place)["ETag"]
    assert answer(client.put_object, **place, Body=b"2", IfMatch=etag) == (200, "")
    assert answer(client.put_object, **place, Body=b"3", IfMatch=etag)[0] == 412
    client.delete_object(**place)
    assert answer(client.put_object, **place, Body=b"3", IfMatch=etag) == (404, "NoSuchKey")


def test_other_prefixes_of_the_bucket_are_as_before(client):
    for key in ("compile/job/a", "recipes/k.json", "models/tiny/recipes/k.json", "capture/a"):
        for _ in range(2):
            assert answer(client.put_object, Bucket=BUCKET, Key=key, Body=b"x") == (200, "")


def files(root: Path, **texts: str) -> Snapshot:
    return Snapshot.of(write_files(root, texts), "files")


@pytest.mark.parametrize("place", [shared_place(LOCAL), own_place("tiny", LOCAL)])
def test_publish_resumes_renews_and_names_what_is_in_the_way(
    tmp_path, access, client, monkeypatch, place
):
    monkeypatch.setattr(verified_copies, "_LARGEST_PART_BYTES", 7)
    monkeypatch.setattr(verified_copies, "COPY", TransferConfig(multipart_threshold=1))
    held = ArtifactStore(access, LOCAL, place, Progress())
    snapshot = files(tmp_path / "files", empty="", small="1", middle="12345", parts="123456789")
    digest = snapshot.manifest.digest

    def run() -> int:
        return publish_files(snapshot, snapshot.manifest, held)

    assert run() == 15
    found = listed(client, BUCKET, "incoming/")
    staging = held.staging_prefix(digest).removeprefix("incoming/")
    assert set(found) == {f"{staging}{name}" for name in ("empty", "middle", "parts", "small")}
    # The manifest is old: it is made young, over itself.
    monkeypatch.setattr(store, "_RENEWED_AFTER", -store._RENEWED_AFTER)
    before = client.head_object(Bucket=BUCKET, Key=place.manifest_key(digest))["VersionId"]
    assert run() == 0
    assert before != client.head_object(Bucket=BUCKET, Key=place.manifest_key(digest))["VersionId"]
    # Half done: what is there with the right content is kept, also what was sent alone.
    for name in ("empty", "middle", "parts"):
        client.delete_object(Bucket=BUCKET, Key=f"{place.files_prefix(digest)}{name}")
    for key in (place.manifest_key(digest), f"{held.staging_prefix(digest)}parts"):
        client.delete_object(Bucket=BUCKET, Key=key)
    assert run() == 9
    # Other content is named, and stays until somebody deletes it.
    wrong = {"Bucket": BUCKET, "Key": f"{place.files_prefix(digest)}small"}
    client.delete_object(**wrong)
    client.put_object(**wrong, Body=b"2", IfNoneMatch="*")
    with pytest.raises(UserError, match="differs from the one sent, in: small") as caught:
        run()
    assert f"aws s3 rm 's3://{BUCKET}/{wrong['Key']}'" in caught.value.problems[0].remedy
    client.delete_object(**wrong)
    # What was sent and has other content is sent again.
    client.put_object(Bucket=BUCKET, Key=f"{held.staging_prefix(digest)}small", Body=b"2")
    assert run() == 1
    assert ArtifactStore(access, LOCAL, place, Progress(), verify=True).holds(digest)


def test_a_publish_that_loses_to_another_keeps_what_that_one_wrote(tmp_path, access, client):
    place = shared_place(LOCAL)
    snapshot = files(tmp_path / "files", a="right", b="right too")
    digest = snapshot.manifest.digest

    class Meanwhile(Progress):
        """Another publish writes between the listing and the upload."""

        def __init__(self, body: bytes) -> None:
            super().__init__()
            self._body = body

        def start(self, total_bytes: int, activity: str = "uploading") -> None:
            if activity == "uploading":
                key = f"{place.files_prefix(digest)}a"
                client.put_object(Bucket=BUCKET, Key=key, Body=self._body, IfNoneMatch="*")

    def run(progress: Progress) -> int:
        held = ArtifactStore(access, LOCAL, place, progress)
        return publish_files(snapshot, snapshot.manifest, held)

    with pytest.raises(UserError, match="differs from the one sent, in: a"):
        run(Meanwhile(b"wrong"))
    client.delete_object(Bucket=BUCKET, Key=f"{place.files_prefix(digest)}a")
    run(Meanwhile(b"right"))
    assert ArtifactStore(access, LOCAL, place, Progress(), verify=True).holds(digest)


def test_a_file_that_another_publish_sends_meanwhile_is_copied(tmp_path, access, store, client):
    snapshot = files(tmp_path / "files", a="right")
    key = f"{store.staging_prefix(snapshot.manifest.digest)}a"

    class Meanwhile(Progress):
        """The same content has another ETag, as everything that is encrypted with a key of KMS."""

        def start(self, total_bytes: int, activity: str = "uploading") -> None:
            if activity == "copying":
                before = client.head_object(Bucket=BUCKET, Key=key)["ETag"]
                assert in_parts(client, key, body=b"right") == (200, "")
                assert client.head_object(Bucket=BUCKET, Key=key)["ETag"] != before

    store.progress = Meanwhile()
    publish_files(snapshot, snapshot.manifest, store)
    assert store.holds(snapshot.manifest.digest)


@pytest.mark.parametrize("within_s3", [True, False])
@pytest.mark.parametrize("largest_part", [verified_copies._LARGEST_PART_BYTES, 1])
@pytest.mark.usefixtures("checkpoint", "small_limit")
def test_a_promotion_writes_once(root, account, within_s3: bool, largest_part: int, monkeypatch):
    monkeypatch.setattr(verified_copies, "_LARGEST_PART_BYTES", largest_part)
    for environment in (STAGING, PRODUCTION):
        guard(account.client("s3"), environment.artifact_bucket)
    published(root, account)
    # It copies only what the target has not.
    client, bucket = account.client("s3"), PRODUCTION.artifact_bucket
    ours = contents(account, STAGING)
    weights = weights_key(root, "files/")
    config = f"{weights}config.json"
    client.put_object(Bucket=bucket, Key=config, Body=ours[config], IfNoneMatch="*")
    promote(root, account, within_s3=within_s3)
    # The package of code names its bucket.
    artifacts = {key: body for key, body in ours.items() if key.startswith(weights)}
    assert artifacts.items() <= contents(account, PRODUCTION).items()
    assert len(client.list_object_versions(Bucket=bucket, Prefix=config)["Versions"]) == 1


@pytest.mark.parametrize("threshold", [1, 1 << 20])
def test_what_lies_in_s3_is_copied_once(access, client, monkeypatch, threshold: int):
    parts = TransferConfig(multipart_threshold=threshold)
    monkeypatch.setattr("slipway.publishing.objects.COPY", parts)
    client.create_bucket(Bucket="theirs")
    for name in ("a", "b"):
        client.put_object(Bucket="theirs", Key=f"m/{name}", Body=name.encode())
    held = ArtifactStore(access, LOCAL, shared_place(LOCAL), Progress())
    manifest, size_bytes = publish_objects(client, S3Address.of("s3://theirs/m/"), held)
    assert size_bytes == 2
    for name in ("a", "b"):
        place = {"Bucket": BUCKET, "Key": f"{held.place.files_prefix(manifest.digest)}{name}"}
        assert client.get_object(**place)["Body"].read() == name.encode()
        etag = client.head_object(Bucket="theirs", Key=f"m/{name}")["ETag"]
        # Both conditions fail with one code: what lies there is told from a source that changed.
        source = {"Bucket": "theirs", "Key": f"m/{name}"}
        options = {"source_client": client, "config": parts, "source": source}
        assert held.copy_in(manifest.digest, name, etag=etag, **options) is False
        with pytest.raises(ClientError, match="412"):
            held.copy_in(manifest.digest, f"{name}2", etag='"other"', **options)
