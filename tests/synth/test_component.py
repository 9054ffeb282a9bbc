"""An endpoint that scales to zero: what its template means, beside the golden file."""

import json
from typing import Any

import pytest

from tests.support.pages import ROOT

CASES = ("scale-to-zero", "scale-to-zero-vpc")


def resources(case: str, kind: str) -> list[tuple[str, dict[str, Any]]]:
    text = (ROOT / "tests" / "golden" / "templates" / f"{case}.json").read_text("utf-8")
    found = json.loads(text)["Resources"].items()
    return [(logical_id, each) for logical_id, each in found if each["Type"] == kind]


def one(case: str, kind: str) -> tuple[str, dict[str, Any]]:
    [(logical_id, resource)] = resources(case, kind)
    return logical_id, resource


@pytest.mark.parametrize("case", CASES)
def test_every_alarm_on_requests_watches_the_component(case: str) -> None:
    dimensions = [
        metric["Dimensions"]
        for _, alarm in resources(case, "AWS::CloudWatch::Alarm")
        for metric in (
            [alarm["Properties"]]
            if "MetricName" in alarm["Properties"]
            else [
                query["MetricStat"]["Metric"]
                for query in alarm["Properties"]["Metrics"]
                if "MetricStat" in query
            ]
        )
        if metric["Namespace"] == "AWS/SageMaker"
    ]
    component = [{"Name": "InferenceComponentName", "Value": f"{case}-local"}]
    # The share of failed requests has four metrics. Latency and the wake alarm have one each.
    assert dimensions == [component] * 6


@pytest.mark.parametrize("case", CASES)
def test_one_request_wakes_the_endpoint_and_notifies_nobody(case: str) -> None:
    policies = dict(resources(case, "AWS::ApplicationAutoScaling::ScalingPolicy"))
    [wake] = [
        alarm["Properties"]
        for _, alarm in resources(case, "AWS::CloudWatch::Alarm")
        if alarm["Properties"].get("MetricName") == "NoCapacityInvocationFailures"
    ]
    assert (wake["ComparisonOperator"], wake["Threshold"]) == ("GreaterThanOrEqualToThreshold", 1)
    [action] = wake["AlarmActions"]
    assert policies[action["Ref"]]["Properties"]["PolicyType"] == "StepScaling"
    assert not {"OKActions", "InsufficientDataActions"} & wake.keys()


@pytest.mark.parametrize("case", CASES)
def test_what_is_deleted_first(case: str) -> None:
    """CloudFormation deletes a resource before those that it depends on."""
    endpoint, _ = one(case, "AWS::SageMaker::Endpoint")
    component, resource = one(case, "AWS::SageMaker::InferenceComponent")
    _, target = one(case, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert resource["Properties"]["EndpointName"] == {"Fn::GetAtt": [endpoint, "EndpointName"]}
    assert target["DependsOn"] == [component]


@pytest.mark.parametrize("case", CASES)
def test_no_step_around_an_update_remembers_variants(case: str) -> None:
    steps = [step for _, step in resources(case, "Custom::SlipwayScaling")]
    assert [step["Properties"]["Step"] for step in steps] == ["Before", "After"]


def test_the_stricter_of_the_public_reports() -> None:
    """A component starts with one copy, and its configuration has a role."""
    _, component = one("scale-to-zero", "AWS::SageMaker::InferenceComponent")
    assert component["Properties"]["RuntimeConfig"] == {"CopyCount": 1}
    _, config = one("scale-to-zero", "AWS::SageMaker::EndpointConfig")
    assert "ExecutionRoleArn" in config["Properties"]
    [variant] = config["Properties"]["ProductionVariants"]
    assert variant["ManagedInstanceScaling"]["MinInstanceCount"] == 0
    assert "ModelName" not in variant


def test_the_network_holds_for_every_copy() -> None:
    _, config = one("scale-to-zero-vpc", "AWS::SageMaker::EndpointConfig")
    _, model = one("scale-to-zero-vpc", "AWS::SageMaker::Model")
    assert config["Properties"]["VpcConfig"] == model["Properties"]["VpcConfig"]
    assert config["Properties"]["EnableNetworkIsolation"] is True
    [(policy, _)] = resources("scale-to-zero-vpc", "AWS::IAM::Policy")
    assert policy in config["DependsOn"]
