"""The dashboard in each golden template: what it shows is what the stack has."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway.facts.prices import dashboard_price

TEMPLATES = Path(__file__).parents[1] / "golden" / "templates"
ENDPOINTS = [
    path.stem
    for path in sorted(TEMPLATES.glob("*.json"))
    if '"AWS::SageMaker::Endpoint"' in path.read_text("utf-8")
]
WIDEST = 24


def resources(name: str, kind: str) -> dict[str, Any]:
    content = json.loads((TEMPLATES / f"{name}.json").read_text("utf-8"))["Resources"]
    return {key: each["Properties"] for key, each in content.items() if each["Type"] == kind}


def properties(name: str) -> Iterator[Any]:
    """The properties of each widget; an alarm's ARN is its logical id."""
    (board,) = resources(name, "AWS::CloudWatch::Dashboard").values()
    body = board["DashboardBody"]
    parts = body["Fn::Join"][1]
    text = "".join(each if isinstance(each, str) else each["Fn::GetAtt"][0] for each in parts)
    for widget in json.loads(text)["widgets"]:
        assert widget["type"] == "metric"
        assert WIDEST % widget["width"] == 0
        yield widget["properties"]


def metrics(name: str) -> list[tuple[str, str, tuple[tuple[str, str], ...]]]:
    found = []
    for shown in properties(name):
        ids = set()
        for *parts, options in shown.get("metrics", ()):
            if not parts:
                # An expression of the metrics before it.
                assert set(options["expression"].split(" / ")) <= ids
                continue
            ids.add(options.get("id"))
            namespace, metric, *pairs = parts
            dimensions = tuple(zip(pairs[::2], pairs[1::2], strict=True))
            found.append((namespace, metric, dimensions))
    return found


@pytest.mark.parametrize("name", ENDPOINTS)
def test_every_alarm_of_the_model_is_shown_once(name: str):
    shown = [
        arn
        for each in properties(name)
        for arn in each.get("annotations", {"alarms": []})["alarms"]
    ]
    # Those of a new fleet watch the same, and those that scale watch no fault.
    alarms = [key for key in resources(name, "AWS::CloudWatch::Alarm") if key.startswith("Alarms")]
    assert sorted(shown) == sorted(alarms)
    titles = [each["title"] for each in properties(name)]
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("name", ENDPOINTS)
def test_what_is_shown_belongs_to_the_endpoint(name: str):
    found = metrics(name)
    variants = [
        each["VariantName"]
        for config in resources(name, "AWS::SageMaker::EndpointConfig").values()
        for each in config["ProductionVariants"]
    ]
    components = {
        each["InferenceComponentName"]
        for each in resources(name, "AWS::SageMaker::InferenceComponent").values()
    }
    shown = {value for _, _, pairs in found for key, value in pairs if key == "VariantName"}
    assert shown == set(variants)
    copies = {value for _, _, pairs in found for key, value in pairs if key.startswith("Inference")}
    assert copies == components | ({"guest-local"} if name == "host" else set())
    price = dashboard_price("us-east-1")
    assert price is not None
    if len(variants) == 1:
        # Alarms read up to four metrics each, beside those that are listed.
        alarms = [
            key for key in resources(name, "AWS::CloudWatch::Alarm") if key.startswith("Alarms")
        ]
        assert len(found) + 4 * len(alarms) <= price.free_metrics


def test_a_queue_and_a_guest_have_their_own():
    names = {metric for _, metric, _ in metrics("async")}
    assert {"TimeInBacklog", "InvocationFailures", "ApproximateBacklogSize"} <= names
    assert not {"Invocations", "OverheadLatency"} & names
    assert "GPUUtilization" in names
    assert not resources("guest", "AWS::CloudWatch::Dashboard")
