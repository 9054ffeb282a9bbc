"""Captured requests and answers: where they lie, and what the plan tells of them."""

from typing import Any

import pytest

from slipway.cli.plan_text import describe_plan
from slipway.config.environments import Environment
from slipway.planning.capture import CapturePlace
from slipway.planning.plan import DeploymentPlan
from slipway.planning.rules import surroundings
from tests.support.plans import plan_for
from tests.support.projects import LOCAL, NETWORKED, model_config
from tests.unit.planning.rule_findings import all_of, findings, refused_fields

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
