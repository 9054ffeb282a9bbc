"""From config to plan: names, units, warnings, costs and the rollout."""

import dataclasses
from typing import Any

import pytest

from slipway.config.environments import Environment
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.errors import UserError
from slipway.planning.lock import Lock
from slipway.planning.plan import ImagePlan
from slipway.planning.plan_json import plan_as_json
from tests.support.plans import plan_for
from tests.support.projects import DIGEST, LOCAL, PRODUCTION, messages, model_config
from tests.unit.planning.models import scaling


def test_names_follow_from_model_and_environment():
    found = plan_for(model_config(), PRODUCTION)
    assert found.stack_name == found.endpoint_name == "tiny-production"
    assert found.log_group_name == "/aws/sagemaker/Endpoints/tiny-production"
    assert found.tags == {"slipway:model": "tiny", "slipway:environment": "production"}
    # The longest names still fit an endpoint.
    config = model_config(name="m" * 40)
    environment = Environment(
        name="e" * 20, account="123456789012", region="us-east-1", artifacts="sample"
    )
    assert len(plan_for(config, environment).endpoint_name) <= 63


def test_the_image_is_ours_at_the_fingerprint_of_its_sources():
    assert plan_for(model_config(), PRODUCTION).image.uri == (
        "210987654321.dkr.ecr.eu-west-1.amazonaws.com/slipway/tensorrt:trt10.13-0123456789abcdef"
    )
    assert ImagePlan("1", "cn-north-1", "r", "t").uri == "1.dkr.ecr.cn-north-1.amazonaws.com.cn/r:t"


@pytest.mark.parametrize(("environment", "target"), [(LOCAL, "cpu"), (PRODUCTION, "sm75")])
def test_the_artifact_is_the_one_the_environment_deploys(environment, target):
    artifact = plan_for(model_config(), environment).artifact
    assert artifact.target == target
    assert artifact.published
    assert artifact.s3_uri == (f"s3://{environment.artifact_bucket}/artifacts/{DIGEST}/files/")


def test_units_are_those_of_what_reads_them():
    found = plan_for(model_config(serving={"request_timeout_seconds": 40}))
    latency = ALARM_KINDS["model_latency_p99"]
    assert found.config.alarms.metric_threshold(latency, gpu_count=1) == 600_000
    assert found.container_environment == {
        "SLIPWAY_DEFAULT_NEW_TOKENS": "12",
        "SLIPWAY_MAX_BATCH_DELAY_MILLISECONDS": "5",
        "SLIPWAY_MAX_BATCH_SIZE": "8",
        "SLIPWAY_MAX_INPUT_TOKENS": "64",
        "SLIPWAY_MAX_NEW_TOKENS": "42",
        "SLIPWAY_MAX_QUEUE_LENGTH": "256",
        "SLIPWAY_REQUEST_TIMEOUT_SECONDS": "40",
    }


def test_incompatibilities_and_the_missing_publish_are_reported_together():
    config = model_config(
        endpoint={"volume_size_gb": 30}, alarms={"model_latency_p99_milliseconds": 60_000}
    )
    with pytest.raises(UserError) as caught:
        plan_for(config, LOCAL, Lock())
    assert [text.split(" ")[0] for text in messages(caught.value)] == [
        "ml.g4dn.xlarge", "60000", "the",
    ]  # fmt: skip
    # A problem of types that variants share is said once.
    variants = [{"name": "a", "weight": 1}, {"name": "b", "weight": 1}]
    config = model_config(endpoint={"instances": ["ml.c5.xlarge"], "variants": variants})
    with pytest.raises(UserError) as caught:
        plan_for(config)
    found = [problem for problem in caught.value.problems if problem.field[-2:] == ("instances", 0)]
    assert len(found) == 1


def test_the_plan_as_data_has_the_derived_addresses():
    found = plan_for(model_config())
    content = plan_as_json(found)
    assert content["image"]["uri"] == found.image.uri
    assert content["artifact"]["s3_uri"] == found.artifact.s3_uri
    # Without defaults of environments.yaml, and models of fallback types, there is no word of them.
    left_out = {"defaults", "overrides"}
    assert {field.name for field in dataclasses.fields(found)} - left_out < set(content)
    # What the files do not say is not repeated.
    assert "mode" not in content["config"]["endpoint"]
    # The same inputs give the same plan.
    assert plan_for(model_config()) == plan_for(model_config())


def test_what_it_costs_is_in_the_plan():
    found = plan_for(model_config(autoscaling=scaling(1, 4))).cost.instances
    # ml.g4dn.xlarge in us-east-1: 0.7364 USD an hour, 730 hours, 1 to 4 instances and 2 at first.
    assert (found.minimum, found.expected, found.maximum) == (537.57, 1075.14, 2150.29)
    fixed = plan_for(model_config()).cost.instances
    assert fixed.minimum == fixed.expected == fixed.maximum == 1075.14


def test_sagemakers_own_rollout_needs_no_settings():
    plan = plan_for(model_config())
    assert (plan.rollout, plan.watched_stacks) == (None, ())


@pytest.mark.parametrize(
    "asked",
    [
        # The default of the field, but somebody asks to be protected by it.
        {"rollback_alarms": ["server_error_rate"]},
        {"strategy": "all_at_once"},
        {"wait_seconds": 0, "rollback_alarms": []},
        {"termination_wait_seconds": 60, "max_execution_seconds": 900},
    ],
)
def test_a_rollout_is_planned_where_any_of_it_is_asked_for(asked: dict[str, Any]):
    config = model_config(rollout=asked)
    assert plan_for(config).rollout is config.rollout
