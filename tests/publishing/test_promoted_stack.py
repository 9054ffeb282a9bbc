"""An artifact that was promoted from another region is deployed and answers."""

import json
from pathlib import Path

import pytest

from slipway.project import Project
from slipway.publishing.promotion import promote
from slipway.publishing.publish import publish
from tests.publishing.progress import Progress
from tests.support.accounts import access_to
from tests.support.projects import DIGEST, LOCAL, config_text, write_project
from tests.support.slipway_stack import MODEL, slipway_stack

STAGING = LOCAL.model_copy(update={"name": "staging", "region": "eu-west-1"})
ENVIRONMENTS = """\
local:
  account: "123456789012"
  region: us-east-1
  artifacts: sample
staging:
  account: "123456789012"
  region: eu-west-1
  artifacts: sample
"""


@pytest.mark.size("all")
def test_a_promoted_artifact_serves(tmp_path: Path) -> None:
    root = tmp_path / "project"
    write_project(root, {MODEL: config_text(MODEL)}, environments=ENVIRONMENTS)
    (root / "samples/tiny/mode").write_text("ok")
    project = Project(root)
    with slipway_stack(tmp_path / "account", time_scale=0.005) as stack:
        url = stack.stacks.aws.connection.url
        access = access_to(url)
        there = access.in_region(STAGING.region)
        place = {"LocationConstraint": STAGING.region}
        there.client("s3").create_bucket(
            Bucket=STAGING.artifact_bucket, CreateBucketConfiguration=place
        )
        tested = publish(project, MODEL, STAGING, there, Progress())
        promoted = promote(
            project, MODEL, LOCAL, access, Progress(),
            source=STAGING, source_access=there, within_s3=True,
        )  # fmt: skip
        assert promoted.digest == tested.digest
        # The golden template, whose digest is the promoted artifact's.
        other = stack.publish("ok")
        text = json.dumps(stack.template("ok"))
        assert DIGEST not in text
        template = json.loads(text.replace(other, promoted.digest))
        assert promoted.digest in json.dumps(template)
        assert stack.stacks.create(f"{MODEL}-local", template) == "CREATE_COMPLETE"
        assert stack.invoke("x") == "x"
        assert stack.delete() == "DELETE_COMPLETE"
