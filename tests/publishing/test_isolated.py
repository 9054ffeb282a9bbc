"""Publishing an isolated model: to its own prefix, with its own key, and to nobody else's."""

from pathlib import Path
from typing import Any

import pytest

from slipway.access import Access
from slipway.errors import UserError
from slipway.planning.artifact_place import own_place
from slipway.project import Project
from slipway.publishing.objects import publish_objects
from slipway.publishing.store import ArtifactStore
from slipway.s3_address import S3Address
from tests.publishing.progress import Progress, run
from tests.support.projects import LOCAL, config_text, messages

# Keys and parameters are not S3's.
pytestmark = pytest.mark.parametrize("s3_url", ["embedded-aws"], indirect=True)

ISOLATED = ("    target: sm75\n", "    target: sm75\n  isolated: true\n")
PLACE = own_place("tiny", LOCAL)


@pytest.fixture
def key(access: Access) -> str:
    return make_key(access)


def make_key(access: Access) -> str:
    key: str = access.client("kms").create_key()["KeyMetadata"]["Arn"]
    access.client("ssm").put_parameter(
        Name="/slipway/local/models/tiny/artifact-key-arn", Value=key, Type="String", Overwrite=True
    )
    return key


def isolate(root: Path, *edits: tuple[str, str]) -> None:
    path = root / "model_configs" / "tiny.yaml"
    path.write_text(config_text("tiny", ISOLATED, *edits), "utf-8")


def keys_used(access: Access) -> dict[str, Any]:
    """Which KMS key each object of the bucket names."""
    client, bucket = access.client("s3"), LOCAL.artifact_bucket
    found = client.list_objects_v2(Bucket=bucket).get("Contents", ())
    return {
        item["Key"]: client.head_object(Bucket=bucket, Key=item["Key"]).get("SSEKMSKeyId")
        for item in found
    }


def test_it_moves_to_its_own_prefix_and_key_and_the_lock_stays(root, access, key):
    shared = run(root, access)
    before = keys_used(access)
    isolate(root)
    moved = run(root, access)
    assert (moved.digest, moved.uploaded_bytes) == (shared.digest, shared.size_bytes)
    assert not moved.lock_changed
    own = f"models/tiny/artifacts/{shared.digest}"
    sent = f"incoming/models/tiny/{shared.digest}"
    assert keys_used(access) == before | {
        f"{sent}/config.json": key,
        f"{sent}/model.onnx": key,
        f"{own}/files/config.json": key,
        f"{own}/files/model.onnx": key,
        f"{own}/manifest.json": key,
    }
    assert Project(root).plan("tiny", LOCAL).artifact.s3_uri == (
        f"s3://{LOCAL.artifact_bucket}/{own}/files/"
    )
    assert run(root, access).uploaded_bytes == 0


def test_it_moves_back_to_what_is_still_shared(root, access, key):
    run(root, access)
    isolate(root)
    run(root, access)
    (root / "model_configs" / "tiny.yaml").write_text(config_text("tiny"), "utf-8")
    assert run(root, access).uploaded_bytes == 0
    assert (
        Project(root)
        .plan("tiny", LOCAL)
        .artifact.s3_uri.startswith(f"s3://{LOCAL.artifact_bucket}/artifacts/")
    )


def test_without_its_stack_nothing_is_sent(root, access):
    isolate(root)
    with pytest.raises(UserError) as caught:
        run(root, access)
    assert messages(caught.value) == [
        "the SSM parameter /slipway/local/models/tiny/artifact-key-arn is not there"
    ]
    assert caught.value.problems[0].remedy == (
        "Run `cdk deploy artifacts-tiny -c env=local` first."
    )
    assert keys_used(access) == {}


def test_what_an_earlier_key_encrypted_is_refused_with_that_key(root, access, key):
    isolate(root)
    run(root, access)
    later = make_key(access)
    with pytest.raises(UserError) as caught:
        run(root, access)
    (problem,) = caught.value.problems
    digest = Project(root).plan("tiny", LOCAL).artifact.digest
    address = f"s3://{LOCAL.artifact_bucket}/models/tiny/artifacts/{digest}/"
    assert problem.message == (
        f"the artifact {address} is encrypted with {key}, and the key of the model is now {later}"
    )
    assert problem.remedy == (
        f"Set `artifacts.key_arn` to {key} and run `cdk deploy artifacts-tiny`, or delete the "
        f"objects under {address} and run `slipway publish` again."
    )
    assert problem.location is not None


def test_objects_in_s3_are_copied_with_its_key(root, access, key):
    access.client("s3").create_bucket(Bucket="theirs")
    access.client("s3").put_object(Bucket="theirs", Key="w/config.json", Body=b"{}")
    store = ArtifactStore(access, LOCAL, PLACE, Progress())
    store.key_arn = key
    manifest, _ = publish_objects(access.client("s3"), S3Address.of("s3://theirs/w/"), store)
    own = f"models/tiny/artifacts/{manifest.digest}"
    assert keys_used(access) == {f"{own}/files/config.json": key, f"{own}/manifest.json": key}
