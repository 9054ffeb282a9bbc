"""Captured data, networks and volumes of an endpoint: where they are, and what plans tell."""

from typing import Any

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.config.environments import Environment
from slipway.planning.artifact_place import CapturePlace
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.vpc import VpcPlan
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, NETWORKED, PRODUCTION, model_config

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a"
BUCKET = NETWORKED.artifact_bucket


def planned(environment: Environment = LOCAL, **endpoint: Any) -> DeploymentPlan:
    return plan_for(model_config(endpoint=endpoint), environment)


def told(plan: DeploymentPlan) -> dict[str, str]:
    return dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())


@pytest.mark.parametrize(
    ("environment", "settings", "expected", "uri"),
    [
        (NETWORKED, {}, CapturePlace(BUCKET, "captured/", "artifact"), f"s3://{BUCKET}/captured"),
        (
            LOCAL,
            {"destination": "s3://mine/a/b/"},
            CapturePlace("mine", "a/b/", None),
            "s3://mine/a/b",
        ),
        (
            LOCAL,
            {"destination": "s3://mine/", "key_arn": KEY},
            CapturePlace("mine", "", KEY),
            "s3://mine",
        ),
    ],
)
def test_the_plan_has_the_place_of_captured_data(environment, settings, expected, uri):
    plan = planned(environment, data_capture=settings)
    assert plan.capture == expected
    # SageMaker appends a slash and the endpoint's name.
    assert plan.capture.uri == uri


def test_the_plan_tells_places_and_keys():
    own = planned(data_capture={"destination": "s3://mine/a/", "sampling_percent": 5})
    assert told(own)["captured"] == "5 % of the requests and answers, to s3://mine/a"
    assert told(planned(NETWORKED, data_capture={"capture": ["input"]}))["captured"] == (
        f"100 % of the requests, to s3://{BUCKET}/captured, encrypted with the artifact key"
    )
    assert told(planned(NETWORKED))["vpc"] == (
        "subnets subnet-0a1b2c3d, subnet-4e5f6a7b, security group the foundation's"
    )
    assert "vpc " not in describe_plan(planned(PRODUCTION))
    plan = planned(volume_key_arn=KEY, instances=["ml.p3.2xlarge"], volume_size_gb=30)
    assert told(plan)["volume"] == f"30 GB, encrypted with {KEY}"
    assert resources_of(plan)["AWS::IAM::Policy"] == 1


SHARED = ("subnet-0a1b2c3d", "subnet-4e5f6a7b")
OWN = {"subnet_ids": ["subnet-0b000000"]}
# The environment, in which `network` names its group.
GROUPED = NETWORKED.model_copy(
    update={"network": NETWORKED.network.model_copy(update={"security_group_ids": ("sg-0a",)})}
)


@pytest.mark.parametrize(
    ("environment", "own", "expected"),
    [
        (PRODUCTION, None, None),
        (NETWORKED, None, VpcPlan(SHARED, ())),
        (GROUPED, None, VpcPlan(SHARED, ("sg-0a",))),
        (NETWORKED, OWN, VpcPlan(("subnet-0b000000",), ())),
        (GROUPED, OWN, VpcPlan(("subnet-0b000000",), ("sg-0a",))),
        (
            GROUPED,
            OWN | {"security_group_ids": ["sg-0b000000"]},
            VpcPlan(("subnet-0b000000",), ("sg-0b000000",)),
        ),
    ],
)
def test_the_config_comes_before_the_environment(environment, own, expected):
    plan = planned(environment, **({} if own is None else {"vpc": own}))
    assert plan.vpc == expected
    assert ("AWS::IAM::Policy" in resources_of(plan)) is (expected is not None)
