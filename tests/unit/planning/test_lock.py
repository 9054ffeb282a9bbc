"""The lock: the same content gives the same bytes, and it knows the config it was made from."""

from typing import Any

import pytest
from pydantic import ValidationError

from slipway.config.schema import ModelConfig
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedArtifact, inputs, is_current
from tests.support.deployments import digest_of
from tests.support.projects import DIGEST, LOCAL, PRODUCTION, lock_for, model_config


def test_the_text_is_stable_and_reviewable():
    lock = lock_for(model_config())
    assert Lock.model_validate_json(lock.render()) == lock
    assert lock.artifact(deployment_of(model_config(), LOCAL)) == lock.sample
    assert lock.artifact(deployment_of(model_config(), PRODUCTION)) == lock.release
    assert Lock().artifact(deployment_of(model_config(), PRODUCTION)) is None


LMI = {"container": "lmi", "framework": "djl-lmi", "version": "0.36.0", "dtype": "bf16"}


def lmi(**serving: Any) -> ModelConfig:
    weights = {"source": "s3", "uri": "s3://my-models/qwen2/"}
    artifacts = {"sample": None, "release": None, "weights": weights}
    return model_config(serving=LMI | serving, artifacts=artifacts)


@pytest.mark.parametrize(
    ("config", "environment", "digest"),
    [
        (model_config(), LOCAL, "4bf8a562f9068c656061a8321539871eaf102227a388afb2a74b149f31c786fa"),
        # Of before `configuration` was there.
        (lmi(), PRODUCTION, "c4ebad057669e8a51c2d95d046e7ab7f7fe6e56487d7bfc175c89c3a479787b5"),
    ],
    ids=["sample", "lmi"],
)
def test_an_older_lock_stays_valid_until_the_config_changes(config, environment, digest):
    """Its digest is of all fields of `serving`, of the family and of the container."""
    locked = LockedArtifact(inputs_digest=digest)
    assert is_current(locked, deployment_of(config, environment))
    artifacts = {"sample": {"path": "samples/other"}, "weights": {"source": "path", "path": "a"}}
    other = model_config(artifacts=artifacts)
    assert not is_current(locked, deployment_of(other, environment))
    config = model_config()
    assert (
        lock_for(config, sets=["sample"]).render()
        == f"""\
{{
  "version": 1,
  "sample": {{
    "inputs_digest": "{digest_of(config, "sample")}",
    "compiled": {{
      "digest": "{DIGEST}",
      "size_bytes": 4606433,
      "file_count": 6,
      "source": "samples/tiny",
      "target": "cpu"
    }}
  }}
}}
"""
    )


def test_what_a_lock_says_of_the_default_files_of_a_repository():
    def digest(**patterns: Any) -> str:
        weights = {"source": "hub", "repository": "a/b", "revision": "0" * 40, **patterns}
        artifacts = {"sample": None, "release": None, "weights": weights}
        return digest_of(model_config(serving=LMI, artifacts=artifacts), "release")

    before = ["*.json", "*.model", "*.safetensors", "*.txt"]
    assert digest() == digest(allow_patterns=before) != digest(allow_patterns=before[:1])
    # What a lock says of a folder has no patterns that nobody wrote.
    weights = {"source": "path", "path": "a"}
    config = model_config(serving=LMI, artifacts={"release": None, "weights": weights})
    assert inputs(deployment_of(config, PRODUCTION))["source"] == weights


def test_settings_of_a_package_are_published_and_variables_are_not():
    packaged, told = lmi(), lmi(configuration="environment")
    for change in ({"max_queue_length": 5}, {"options": {"max_model_len": 4096}}):
        assert digest_of(lmi(**change), "release") != digest_of(packaged, "release")
        changed = lmi(configuration="environment", **change)
        assert digest_of(changed, "release") == digest_of(told, "release")
    assert digest_of(told, "release") != digest_of(packaged, "release")
    other = model_config(
        serving=LMI | {"configuration": "environment"},
        artifacts={"release": None, "weights": {"source": "s3", "uri": "s3://my-models/other/"}},
    )
    assert digest_of(other, "release") != digest_of(told, "release")


# Written down, so that a change of the algorithm, which makes every lock stale, does not pass
# unnoticed.
def test_the_digest_of_inputs_is_the_one_locks_were_written_with():
    assert digest_of(model_config(), "sample") == (
        "d349bc6e0066ea5232d2ce25b44d868f245ce93ce53631dd398e9e32d200aebd"
    )


@pytest.mark.parametrize("artifacts", ["sample", "release"])
def test_the_digest_of_inputs_changes_with_what_the_artifact_is_made_from(artifacts):
    before = digest_of(model_config(), artifacts)
    moved = model_config(
        artifacts={
            "sample": {"path": "samples/other"},
            "release": {"path": "build/other", "target": "sm75"},
        }
    )
    assert digest_of(moved, artifacts) != before


def test_a_release_depends_on_its_target():
    sm86 = model_config(artifacts={"release": {"path": "build/tiny", "target": "sm86"}})
    assert digest_of(sm86, "release") != digest_of(model_config(), "release")
    assert digest_of(sm86, "sample") == digest_of(model_config(), "sample")


@pytest.mark.parametrize(
    "sections",
    [
        {"endpoint": {"instance_count": 9}},
        {"serving": {"max_batch_size": 1}},
        {"tags": {"team": "search"}},
        {"description": "another"},
        {"name": "other"},
    ],
    ids=lambda sections: next(iter(sections)),
)
def test_the_digest_of_inputs_does_not_change_with_the_rest(sections):
    assert digest_of(model_config(**sections), "sample") == digest_of(model_config(), "sample")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"version": 2}', "Input should be 1"),
        ('{"compiled": {}}', "Extra inputs are not permitted"),
        ("<<<<<<< HEAD", "Invalid JSON"),
        (lock_for(model_config()).render().replace(DIGEST, "AB" * 32), "should match pattern"),
    ],
    ids=["version", "field", "merge conflict", "digest"],
)
def test_anything_else_is_not_a_lock(text, message):
    with pytest.raises(ValidationError, match=message):
        Lock.model_validate_json(text)


def test_what_is_compiled_is_kept_for_each_environment():
    config = model_config(
        artifacts={
            "release": None,
            "weights": {"source": "path", "path": "build/checkpoint"},
            "compile": {"instance": "ml.g4dn.xlarge"},
        }
    )
    lock = lock_for(config)
    assert lock.release is None
    first = lock.artifact(deployment_of(config, PRODUCTION))
    assert first is not None
    staging = PRODUCTION.model_copy(update={"name": "another"})
    assert lock.artifact(deployment_of(config, staging)) is None
    both = lock.with_artifact(deployment_of(config, staging), first)
    assert (
        both.artifact(deployment_of(config, PRODUCTION))
        == both.artifact(deployment_of(config, staging))
        == first
    )
    assert Lock.model_validate_json(both.render()) == both
    # In order of name, whichever was published first: a lock has one text.
    assert list(both.environments or {}) == ["another", "production"]
