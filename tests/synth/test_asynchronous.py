"""The template of an asynchronous endpoint: its settings, its rights and its alarms."""

from typing import Any

import pytest

from slipway.config.alarms_of_modes import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.planning.described_alarms import kind_of
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.synth.assemblies import of_plans

# https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html, read 2026-11-24: the
# list is "exhaustive". Metrics of machines have a namespace of their own.
_OF_ENDPOINT = {
    "ApproximateBacklogSize",
    "ApproximateBacklogSizePerInstance",
    "ApproximateAgeOfOldestRequest",
    "HasBacklogWithoutCapacity",
}
_OF_VARIANT = {
    "Invocation4XXErrors",
    "Invocation5XXErrors",
    "ModelLatency",
    "RequestDownloadFailures",
    "ResponseUploadFailures",
    "NotificationFailures",
    "RequestDownloadLatency",
    "ResponseUploadLatency",
    "ExpiredRequests",
    "InvocationFailures",
    "TimeInBacklog",
    "TotalProcessingTime",
}


@pytest.fixture(scope="module")
def resources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """An asynchronous endpoint with every alarm, and a queue without further settings."""
    queue = {"input": "s3://requests/in/", "output": "s3://answers/out/"}
    alarms = {kind.field: 90 for kind in ALARM_KINDS.values() if watch_of(kind, "async")}
    rollout = {"rollback_alarms": ["server_error_rate", "model_latency_p99"]}
    endpoint = {"mode": "async", "async_inference": queue}
    config = model_config("queued", endpoint=endpoint, alarms=alarms, rollout=rollout)
    assembly = of_plans(tmp_path_factory.mktemp("async"), {"queued": plan_for(config)})
    found: dict[str, Any] = assembly.template("queued")["Resources"]
    return found


@pytest.fixture(scope="module")
def watched(resources: dict[str, Any]) -> list[dict[str, Any]]:
    found = resources.values()
    return [each["Properties"] for each in found if each["Type"] == "AWS::CloudWatch::Alarm"]


def test_the_role_may_read_requests_and_write_answers(resources: dict[str, Any]):
    (policy,) = (r for name, r in resources.items() if "AsyncInference" in name)
    rights = {
        item["Sid"]: (item["Action"], item["Resource"])
        for item in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    assert rights == {
        "ReadRequests": ("s3:GetObject", "arn:aws:s3:::requests/in/*"),
        "WriteAnswers": (
            ["s3:AbortMultipartUpload", "s3:PutObject"],
            "arn:aws:s3:::answers/out/*",
        ),
    }


def test_every_alarm_reads_metrics_that_the_endpoint_has(watched: list[dict[str, Any]]):
    of_endpoint = [{"Name": "EndpointName", "Value": "queued-local"}]
    of_variant = [*of_endpoint, {"Name": "VariantName", "Value": "AllTraffic"}]
    read = set[str]()
    for alarm in watched:
        stats = [q["MetricStat"]["Metric"] for q in alarm.get("Metrics", ()) if "MetricStat" in q]
        for metric in stats or [alarm]:
            if metric["Namespace"] == "/aws/sagemaker/Endpoints":
                assert metric["Dimensions"] == of_variant
                continue
            known = _OF_ENDPOINT if metric["Dimensions"] == of_endpoint else _OF_VARIANT
            assert metric["Dimensions"] in (of_endpoint, of_variant)
            assert metric["MetricName"] in known
            read.add(metric["MetricName"])
    assert read == {
        "ApproximateAgeOfOldestRequest",
        "Invocation4XXErrors",
        "InvocationFailures",
        "ModelLatency",
        "TimeInBacklog",
    }
    # AWS publishes none of them for one fleet alone, so a rollout has no alarms of its own.
    assert len(watched) == 7


def test_the_alarms_of_a_queue_are_recognised_in_an_account(watched: list[dict[str, Any]]):
    fields = {kind.field for alarm in watched if (kind := kind_of(alarm))}
    assert fields == {kind.field for kind in ALARM_KINDS.values() if watch_of(kind, "async")}
