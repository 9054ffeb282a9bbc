"""`slipway prune` on the embedded AWS: a live stack keeps its artifact, and the rights suffice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from slipway.access import Access
from slipway.pruning import Unused, delete, find_references, find_unused
from slipway.rights.commands import prune_policy
from tests.support.images import put_image
from tests.support.projects import LOCAL, write_project
from tests.support.recorded_calls import RecordedCalls
from tests.support.slipway_stack import slipway_stack
from tests.support.stacks import tags_of

BUCKET = LOCAL.artifact_bucket
LATER = timedelta(days=2)


def unused(root: Path, access: Access) -> list[Unused]:
    now = datetime.now(UTC) + LATER
    return find_unused(LOCAL, find_references(root, [], access), access, now)


@pytest.mark.size("all")
def test_what_a_live_stack_needs_stays_until_it_is_destroyed(root: Path, tmp_path: Path) -> None:
    write_project(root, {})
    with slipway_stack(tmp_path / "account", time_scale=0.005) as stack:
        access, s3 = stack.access, stack.stacks.client("s3")
        recorded = RecordedCalls(access, f"{LOCAL.region}:{LOCAL.account}")
        assert stack.create("ok", Tags=tags_of(LOCAL.tags)) == "CREATE_COMPLETE"
        live, old = stack.publish("ok"), stack.publish("old")
        weights = stack.publish("weights")
        s3.put_object(
            Bucket=BUCKET,
            Key=f"artifacts/{live}/files/serving.properties",
            Body=f"option.model_id=s3://{BUCKET}/artifacts/{weights}/files/".encode(),
        )
        half = f"artifacts/{old}/files/half"
        s3.create_multipart_upload(Bucket=BUCKET, Key=half)
        put_image(stack.stacks.client("ecr"), "slipway/tensorrt", "25.09-0123456789abcdef")

        found = unused(root, access)
        assert [(each.kind, each.name) for each in found] == [
            ("artifact", address(old)),
            ("image", "slipway/tensorrt:25.09-0123456789abcdef"),
            ("unfinished upload", f"s3://{BUCKET}/{half}"),
        ]
        assert [delete(each, LOCAL, access) for each in found] == [[], [], []]
        assert unused(root, access) == []
        assert stack.invoke("x") == "x"

        assert stack.delete() == "DELETE_COMPLETE"
        found = unused(root, access)
        assert {each.name for each in found} == {address(live), address(weights)}
        assert [delete(each, LOCAL, access) for each in found] == [[], []]
        assert "Contents" not in s3.list_objects_v2(Bucket=BUCKET, Prefix="artifacts/")
    policy = prune_policy(LOCAL)
    assert recorded.denied_by(policy) == set()
    # No training job was running.
    assert recorded.unused_of(policy) == {("ReadReferences", "sagemaker:DescribeTrainingJob")}


def address(digest: str) -> str:
    return f"s3://{BUCKET}/artifacts/{digest}/"
