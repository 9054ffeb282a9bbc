"""Captured data and the network of an endpoint: where they are, and what the plan tells of them."""

from typing import Any

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.config.environments import Environment
from slipway.planning.artifact_place import CapturePlace
from slipway.planning.plan import DeploymentPlan
from slipway.planning.resources import resources_of
from slipway.planning.rules import surroundings
from slipway.planning.vpc import VpcPlan
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, NETWORKED, PRODUCTION, model_config
from tests.unit.planning.rule_findings import all_of, findings, only, refused_fields

KEY = "arn:aws:kms:us-east-1:123456789012:key/0a"
OTHER_KEY = KEY.replace("us-east-1", "us-east-2")


def planned(environment: Environment, **settings: Any) -> DeploymentPlan:
    config = model_config(endpoint={"data_capture": settings})
    return plan_for(config, environment)


@pytest.mark.parametrize(
    ("environment", "settings", "expected", "uri"),
    [
        (
            NETWORKED,
            {},
            CapturePlace(NETWORKED.artifact_bucket, "captured/", "artifact"),
            f"s3://{NETWORKED.artifact_bucket}/captured",
        ),
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
def test_the_plan_has_the_place(
    environment: Environment, settings: dict[str, Any], expected: CapturePlace, uri: str
) -> None:
    plan = planned(environment, **settings)
    assert plan.capture == expected
    assert plan.capture is not None
    # SageMaker appends a slash and the endpoint's name.
    assert plan.capture.uri == uri


def test_the_plan_tells_it() -> None:
    def told(plan: DeploymentPlan) -> str:
        lines = dict(line.split(maxsplit=1) for line in describe_plan(plan).splitlines())
        return lines["captured"]

    assert told(planned(LOCAL, destination="s3://mine/a/", sampling_percent=5)) == (
        "5 % of the requests and answers, to s3://mine/a"
    )
    assert told(planned(NETWORKED, capture=["input"])) == (
        f"100 % of the requests, to s3://{NETWORKED.artifact_bucket}/captured, encrypted with the "
        "artifact key"
    )


def test_the_artifact_bucket_must_know_when_to_delete_it() -> None:
    endpoint: dict[str, Any] = {"data_capture": {}}
    assert findings(surroundings.captured_data_has_an_end, NETWORKED, endpoint=endpoint) == []
    assert refused_fields(surroundings.captured_data_has_an_end, endpoint=endpoint) == [
        "endpoint.data_capture"
    ]
    own = {"data_capture": {"destination": "s3://mine/"}}
    assert findings(surroundings.captured_data_has_an_end, endpoint=own) == []


def test_a_key_goes_with_a_destination_of_its_region() -> None:
    rule = all_of((surroundings.capture_key_has_a_destination, surroundings.capture_key_is_near))
    own = {"data_capture": {"destination": "s3://mine/", "key_arn": KEY}}
    assert findings(rule, endpoint=own) == []
    wrong = {"data_capture": {"key_arn": OTHER_KEY}}
    assert refused_fields(rule, endpoint=wrong) == [
        "endpoint.data_capture.key_arn",
        "endpoint.data_capture.key_arn",
    ]


SHARED = ("subnet-0a1b2c3d", "subnet-4e5f6a7b")


def planned_in(environment: Environment, own: dict[str, Any] | None) -> DeploymentPlan:
    config = model_config(endpoint={} if own is None else {"vpc": own})
    return plan_for(config, environment)


def with_groups(*groups: str) -> Environment:
    """The environment, in which `network` names its groups."""
    network = NETWORKED.network
    assert network is not None
    update = {"network": network.model_copy(update={"security_group_ids": groups})}
    return NETWORKED.model_copy(update=update)


@pytest.mark.parametrize(
    ("environment", "own", "expected"),
    [
        (PRODUCTION, None, None),
        (NETWORKED, None, VpcPlan(SHARED, ())),
        (with_groups("sg-0a000000"), None, VpcPlan(SHARED, ("sg-0a000000",))),
        (NETWORKED, {"subnet_ids": ["subnet-0b000000"]}, VpcPlan(("subnet-0b000000",), ())),
        (
            with_groups("sg-0a000000"),
            {"subnet_ids": ["subnet-0b000000"]},
            VpcPlan(("subnet-0b000000",), ("sg-0a000000",)),
        ),
        (
            with_groups("sg-0a000000"),
            {"subnet_ids": ["subnet-0b000000"], "security_group_ids": ["sg-0a000000"]},
            VpcPlan(("subnet-0b000000",), ("sg-0a000000",)),
        ),
    ],
)
def test_the_config_comes_before_the_environment(
    environment: Environment, own: dict[str, Any] | None, expected: VpcPlan | None
) -> None:
    plan = planned_in(environment, own)
    assert plan.vpc == expected
    assert ("AWS::IAM::Policy" in resources_of(plan)) is (expected is not None)


def test_the_plan_tells_the_network() -> None:
    lines = dict(
        line.split(maxsplit=1) for line in describe_plan(planned_in(NETWORKED, None)).splitlines()
    )
    assert lines["vpc"] == (
        "subnets subnet-0a1b2c3d, subnet-4e5f6a7b, security group the foundation's"
    )
    assert "vpc " not in describe_plan(planned_in(PRODUCTION, None))


def test_a_vpc_needs_a_security_group_from_somewhere() -> None:
    endpoint = {"vpc": {"subnet_ids": ["subnet-0b000000"]}}
    assert only(findings(surroundings.vpc_has_a_security_group, endpoint=endpoint)) == (
        "endpoint.vpc.security_group_ids",
        "the VPC has no security group, and environment `local` has no `network` that gives one",
        "Add `security_group_ids`, or a `network` to the environment in environments.yaml.",
    )
    assert findings(surroundings.vpc_has_a_security_group, NETWORKED, endpoint=endpoint) == []


def test_ids_are_named_once() -> None:
    own = {
        "subnet_ids": ["subnet-0b000000", "subnet-0b000000"],
        "security_group_ids": ["sg-0a000000", "sg-0a000000"],
    }
    assert [
        found[:2] for found in findings(surroundings.ids_are_named_once, endpoint={"vpc": own})
    ] == [
        ("endpoint.vpc.subnet_ids", "subnet-0b000000 is listed twice"),
        ("endpoint.vpc.security_group_ids", "sg-0a000000 is listed twice"),
    ]
