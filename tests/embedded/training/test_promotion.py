"""Promoting a model that a training job compiled: one artifact for environments of one target."""

import json

import pytest

from slipway.project import Project
from slipway.publishing.promotion import promote
from slipway.publishing.publish import Published
from tests.embedded.training.publishing import ENVIRONMENTS, STAGING, Publishing, Said

pytestmark = pytest.mark.timeout(120)

PRODUCTION = STAGING.model_copy(update={"name": "production"})


@pytest.fixture
def publishing(publishing: Publishing) -> Publishing:
    publishing.account.s3.create_bucket(Bucket=PRODUCTION.artifact_bucket)
    publishing.put_parameters("production")
    staging = ENVIRONMENTS.partition("staging:")[2]
    text = f"{ENVIRONMENTS}production:{staging}"
    (publishing.root / "environments.yaml").write_text(text, "utf-8")
    publishing.build_image()
    return publishing


def run(publishing: Publishing) -> Published:
    access = publishing.access
    return promote(
        Project(publishing.root),
        "tiny",
        PRODUCTION,
        access,
        Said(),
        source=STAGING,
        source_access=access,
        within_s3=True,
    )


def test_nothing_is_compiled_again_by_the_promotion_or_by_a_later_publish(publishing):
    tested = publishing.run(STAGING)
    promoted = run(publishing)
    assert (promoted.digest, promoted.target, promoted.source) == (
        tested.digest, "sm75", tested.source,
    )  # fmt: skip
    assert publishing.locked(PRODUCTION) == publishing.locked(STAGING)
    files = publishing.verify(promoted.digest, PRODUCTION)
    assert files == publishing.verify(tested.digest, STAGING)
    assert promoted.weights_digest is not None
    publishing.verify(promoted.weights_digest, PRODUCTION)
    said = Said()
    again = publishing.run(PRODUCTION, said)
    assert (again.digest, again.uploaded_bytes, again.lock_changed) == (tested.digest, 0, False)
    assert f"The same was compiled before, by {tested.source}." in said.notes
    assert len(publishing.jobs()) == 1


@pytest.mark.size("all")
def test_what_was_built_from_other_inputs_since_is_not_taken_for_it(publishing):
    """A newer record in the source would name an artifact that the target does not have."""
    publishing.run(STAGING)
    for item in publishing.objects(STAGING, "recipes/"):
        record = json.loads(publishing.body(STAGING, item["Key"]))
        record["made"]["digest"] = "0" * 64
        publishing.account.s3.put_object(
            Bucket=STAGING.artifact_bucket, Key=item["Key"], Body=json.dumps(record)
        )
    before = publishing.objects(PRODUCTION, "recipes/")
    promoted = run(publishing)
    publishing.verify(promoted.digest, PRODUCTION)
    assert publishing.objects(PRODUCTION, "recipes/") == before
