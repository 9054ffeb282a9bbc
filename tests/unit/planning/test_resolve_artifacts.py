"""Plans of published artifacts, and of artifacts that are missing or stale or of another target."""

import pytest

from slipway.config.environments import Environment
from slipway.errors import Kind, UserError
from slipway.planning.families import deployment_of
from slipway.planning.lock import Lock, LockedArtifact, LockedPart
from tests.support.deployments import digest_of
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, PRODUCTION, lock_for, messages, model_config
from tests.unit.planning.models import checkpoint


@pytest.mark.parametrize("environment", [LOCAL, PRODUCTION], ids=lambda item: item.name)
def test_what_was_never_published_is_refused_with_the_command(environment):
    with pytest.raises(UserError) as caught:
        plan_for(model_config(), environment, Lock())
    (problem,) = caught.value.problems
    assert problem.kind is Kind.STATE
    assert problem.field == ("artifacts", environment.artifacts)
    assert problem.message == f"the {environment.artifacts} was never published"
    assert problem.remedy == (
        f"Run `slipway publish tiny --env {environment.name}` and commit the lock file "
        "model_configs/tiny.lock.json."
    )


def test_a_config_changed_after_publishing_is_refused_with_the_command():
    lock = lock_for(model_config())
    changed = model_config(artifacts={"sample": {"path": "samples/other"}})
    with pytest.raises(UserError) as caught:
        plan_for(changed, LOCAL, lock)
    (problem,) = caught.value.problems
    assert problem.message == "the config changed after the sample was published"
    assert problem.remedy.startswith("Run `slipway publish tiny --env local` and commit the lock ")
    # The release was made from nothing that changed.
    assert plan_for(changed, PRODUCTION, lock).artifact.published


def test_an_unpublished_plan_names_what_cannot_exist_and_says_so():
    found = plan_for(model_config(), LOCAL, Lock(), allow_unpublished=True)
    assert found.artifact.s3_uri.endswith("/artifacts/unpublished/files/")
    assert not found.artifact.published
    assert [(item.code, item.message) for item in found.warnings] == [
        ("unpublished", "The artifact is not published: SageMaker would refuse this.")
    ]


def test_being_allowed_to_be_unpublished_changes_nothing_of_what_is_published():
    config = model_config()
    assert plan_for(config, allow_unpublished=True) == plan_for(config)


def test_a_lock_without_a_part_that_is_needed_is_none():
    config = model_config(artifacts={"release": None})
    with pytest.raises(UserError) as caught:
        plan_for(config, PRODUCTION, Lock())
    assert messages(caught.value) == [
        "environment `production` deploys the release, and there is none"
    ]
    config = model_config(**checkpoint())
    lock = lock_for(config)
    whole = lock.artifact(deployment_of(config, PRODUCTION))
    assert whole is not None
    for part in ("weights", "code"):
        partial = lock.with_artifact(
            deployment_of(config, PRODUCTION), whole.model_copy(update={part: None})
        )
        with pytest.raises(UserError) as caught:
            plan_for(config, PRODUCTION, partial)
        assert messages(caught.value) == ["the release was never published"]
    config = model_config(artifacts={"sample": None})
    found = plan_for(config, LOCAL, Lock(), allow_unpublished=True)
    assert [item.message for item in found.warnings] == [
        "There is no sample to publish, which `local` deploys: SageMaker would refuse this."
    ]
    with pytest.raises(UserError) as caught:
        plan_for(config, LOCAL, Lock())
    assert messages(caught.value) == ["environment `local` deploys the sample, and there is none"]
    assert caught.value.problems[0].remedy.startswith(
        "Set `artifacts: release` for `local` in environments.yaml to deploy the model itself, or "
    )


def test_a_change_of_how_settings_are_said_needs_a_publish():
    packaged, told = (
        model_config(**checkpoint(configuration=form)) for form in ("file", "environment")
    )
    for config, lock in ((packaged, lock_for(told)), (told, lock_for(packaged))):
        with pytest.raises(UserError, match="was never published"):
            plan_for(config, PRODUCTION, lock)


def test_serving_otherwise_is_another_artifact_only_where_it_is_made_of_a_checkpoint():
    config = model_config(**checkpoint())
    for changed, published in (
        (model_config(**checkpoint(dtype="bf16")), False),
        (model_config(**checkpoint() | {"alarms": {"model_latency_p99_milliseconds": 700}}), True),
    ):
        found = plan_for(changed, PRODUCTION, lock_for(config), allow_unpublished=True)
        assert found.artifact.published is published
    compiled = model_config()
    assert plan_for(model_config(serving={"max_queue_length": 9}), PRODUCTION, lock_for(compiled))


def test_without_any_source_the_remedy_is_a_sample():
    config = model_config(artifacts={"sample": None, "release": None})
    with pytest.raises(UserError) as caught:
        plan_for(config, LOCAL, Lock())
    assert caught.value.problems[0].remedy.startswith("Add `artifacts.sample` with the path of ")


COMPILED = {
    "artifacts": {
        "release": None,
        "sample": {"path": "samples/tiny"},
        "weights": {"source": "path", "path": "build/checkpoint"},
        "compile": {"instance": "ml.g4dn.xlarge"},
    }
}
EMBEDDED = Environment(name="local", account="123456789012", region="us-east-1")


def test_what_was_compiled_is_the_model_data_and_its_weights_are_not():
    config = model_config(**COMPILED)
    found = plan_for(config, PRODUCTION, lock_for(config))
    assert (found.artifact.digest, found.artifact.target) == (DIGEST, "sm75")
    assert found.weights is None
    # What another environment compiled is not this one's.
    config = model_config(**COMPILED)
    for environment in (EMBEDDED, PRODUCTION.model_copy(update={"name": "staging"})):
        with pytest.raises(UserError, match="the release was never published") as caught:
            plan_for(config, environment, lock_for(config))
        assert f"--env {environment.name}`" in caught.value.problems[0].remedy


@pytest.mark.parametrize(
    ("environment", "target", "message"),
    [
        (
            PRODUCTION,
            "cpu",
            "the release in the lock was compiled for cpu, and ml.g4dn.xlarge needs sm75",
        ),
        (
            PRODUCTION,
            "sm86",
            "the release in the lock was compiled for sm86, and ml.g4dn.xlarge needs sm75",
        ),
        (
            EMBEDDED,
            "sm75",
            "the release in the lock was compiled for sm75, and the embedded AWS has no "
            "accelerator",
        ),
    ],
    ids=["no GPU", "another GPU", "embedded"],
)
def test_a_model_compiled_for_something_else_is_never_deployed(environment, target, message):
    config = model_config(**COMPILED)
    compiled = lock_for(config).artifact(deployment_of(config, PRODUCTION))
    assert compiled is not None
    assert compiled.compiled is not None
    other = compiled.model_copy(
        update={"compiled": compiled.compiled.model_copy(update={"target": target})}
    )
    with pytest.raises(UserError) as caught:
        plan_for(config, environment, Lock(environments={environment.name: other}))
    (problem,) = caught.value.problems
    assert problem.message == message
    assert problem.remedy == (
        f"Run `slipway publish tiny --env {environment.name}` and commit the lock file "
        "model_configs/tiny.lock.json."
    )
    assert problem.field == ("artifacts", "compile")


def test_an_image_of_ones_own_takes_weights_as_they_are():
    config = model_config(
        serving={
            "container": "custom",
            "image_uri": "210987654321.dkr.ecr.eu-west-1.amazonaws.com/own:1",
        },
        artifacts={"release": None, "weights": {"source": "path", "path": "build/checkpoint"}},
    )
    weights = LockedPart(
        digest=DIGEST, size_bytes=1, file_count=1, source="build/checkpoint", target="any"
    )
    locked = LockedArtifact(inputs_digest=digest_of(config, "release"), weights=weights)
    found = plan_for(config, PRODUCTION, Lock(release=locked))
    assert (found.artifact.digest, found.artifact.target) == (DIGEST, "any")
