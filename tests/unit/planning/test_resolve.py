"""From config to plan: names, units, warnings, and every reason why there is none."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.errors import Kind, UserError
from slipway.facts.instances import instance_types
from slipway.planning.lock import Lock
from slipway.planning.plan import DeploymentPlan, ImagePlan
from slipway.planning.resolve import resolve
from tests.unit.projects import (
    DIGEST,
    IMAGE_DIGESTS,
    LOCAL,
    PRODUCTION,
    lock_for,
    messages,
    model_config,
)


def plan(
    config: ModelConfig,
    environment: Environment = LOCAL,
    lock: Lock | None = None,
    **options: Any,
) -> DeploymentPlan:
    used = lock_for(config) if lock is None else lock
    return resolve(config, instance_types(), environment, used, IMAGE_DIGESTS, **options)


def test_names_follow_from_model_and_environment():
    found = plan(model_config(), PRODUCTION)
    assert found.name == "tiny"
    assert found.stack_name == found.endpoint_name == "tiny-production"
    assert found.log_group_name == "/aws/sagemaker/Endpoints/tiny-production"
    assert (found.account, found.region) == ("210987654321", "eu-west-1")
    assert found.tags == {"slipway:model": "tiny", "slipway:environment": "production"}


def test_the_longest_names_still_fit_an_endpoint():
    config = model_config(name="m" * 40)
    environment = Environment(
        name="e" * 20, account="123456789012", region="us-east-1", artifacts="sample"
    )
    assert len(plan(config, environment).endpoint_name) <= 63


def test_the_image_is_ours_at_the_fingerprint_of_its_sources():
    assert plan(model_config(), PRODUCTION).image.uri == (
        "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt:0123456789abcdef"
    )
    assert ImagePlan("1", "cn-north-1", "r", "t").uri == "1.dkr.ecr.cn-north-1.amazonaws.com.cn/r:t"


@pytest.mark.parametrize(("environment", "target"), [(LOCAL, "cpu"), (PRODUCTION, "sm75")])
def test_the_artifact_is_the_one_the_environment_deploys(environment, target):
    artifact = plan(model_config(), environment).artifact
    assert artifact.target == target
    assert artifact.published
    assert artifact.s3_uri == (f"s3://{environment.artifact_bucket}/artifacts/{DIGEST}/files/")


def test_units_are_those_of_what_reads_them():
    found = plan(model_config())
    assert found.alarms.model_latency_p99_microseconds == 600_000
    assert found.container_environment == {
        "SLIPWAY_DEFAULT_NEW_TOKENS": "12",
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
        "SLIPWAY_MAX_BATCH_SIZE": "8",
        "SLIPWAY_MAX_INPUT_TOKENS": "64",
        "SLIPWAY_MAX_NEW_TOKENS": "42",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "55",
    }


def test_one_instance_at_rest_is_worth_a_warning():
    scaling = {
        "min_instance_count": 1,
        "max_instance_count": 4,
        "target_invocations_per_instance_per_minute": 60,
    }
    warning = (
        "single-instance",
        "One instance at rest: if it or its zone fails, the endpoint is down meanwhile.",
    )

    def warnings(**sections: Any) -> list[tuple[str, str]]:
        found = plan(model_config(**sections)).warnings
        return [dataclasses.astuple(item) for item in found]

    assert warnings() == []
    assert warnings(endpoint={"instance_count": 1}) == [warning]
    # What counts is the least the autoscaling keeps.
    assert warnings(autoscaling=scaling) == [warning]
    assert warnings(autoscaling={**scaling, "min_instance_count": 2}) == []


@pytest.mark.parametrize("environment", [LOCAL, PRODUCTION], ids=lambda item: item.name)
def test_what_was_never_published_is_refused_with_the_command(environment):
    with pytest.raises(UserError) as caught:
        plan(model_config(), environment, Lock())
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
        plan(changed, LOCAL, lock)
    (problem,) = caught.value.problems
    assert problem.message == "the config changed after the sample was published"
    assert problem.remedy.startswith("Run `slipway publish tiny --env local` and commit the lock ")
    # The release was made from nothing that changed.
    assert plan(changed, PRODUCTION, lock).artifact.published


def test_an_unpublished_plan_names_what_cannot_exist_and_says_so():
    found = plan(model_config(), LOCAL, Lock(), allow_unpublished=True)
    assert found.artifact.s3_uri.endswith("/artifacts/unpublished/files/")
    assert not found.artifact.published
    assert [(item.code, item.message) for item in found.warnings] == [
        ("unpublished", "The artifact is not published: SageMaker would refuse this.")
    ]


def test_being_allowed_to_be_unpublished_changes_nothing_of_what_is_published():
    config = model_config()
    assert plan(config, allow_unpublished=True) == plan(config)


def test_incompatibilities_and_the_missing_publish_are_reported_together():
    config = model_config(
        endpoint={"volume_size_gb": 30}, alarms={"model_latency_p99_milliseconds": 60_000}
    )
    with pytest.raises(UserError) as caught:
        plan(config, LOCAL, Lock())
    assert [text.split(" ")[0] for text in messages(caught.value)] == [
        "ml.g4dn.xlarge", "60000", "the",
    ]  # fmt: skip


def test_without_a_release_there_is_nothing_to_publish_yet():
    config = model_config(artifacts={"release": None})
    with pytest.raises(UserError) as caught:
        plan(config, PRODUCTION, Lock())
    assert messages(caught.value) == [
        "environment `production` deploys the release, and there is none"
    ]


def test_the_plan_as_data_has_the_derived_addresses():
    found = plan(model_config())
    content = found.as_json()
    assert content["image"]["uri"] == found.image.uri
    assert content["artifact"]["s3_uri"] == found.artifact.s3_uri
    assert set(content) == {field.name for field in dataclasses.fields(found)}


def test_the_same_inputs_give_the_same_plan():
    assert plan(model_config()) == plan(model_config())


def warnings_of(region: str, instance_type: str) -> list[str]:
    config = model_config(endpoint={"instances": [instance_type]}, artifacts={"release": None})
    environment = LOCAL.model_copy(update={"region": region})
    return [warning.message for warning in plan(config, environment).warnings]


def test_a_type_that_is_not_listed_in_the_region_is_worth_a_warning():
    assert warnings_of("eu-west-1", "ml.p5.48xlarge") == [
        "ml.p5.48xlarge is not in AWS's list of hosting types of eu-west-1, so the endpoint may "
        "fail to start there; it is in the lists of ap-southeast-2, ca-central-1, eu-west-2, "
        "sa-east-1, us-east-1, us-east-2, us-west-2."
    ]
    assert warnings_of("us-east-1", "ml.p5.48xlarge") == []
    # Neither the region nor the type is in the source: nothing is known, so nothing is said.
    assert warnings_of("eusc-de-east-1", "ml.g5.xlarge") == []
    assert warnings_of("eu-west-1", "ml.p3.2xlarge") == []
