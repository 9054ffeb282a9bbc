"""The template of an asynchronous endpoint: its settings, its rights and its alarms."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from slipway.config.alarms_of_modes import watch_of
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.planning.described_alarms import kind_of
from tests.support.plans import plan_for
from tests.support.projects import model_config
from tests.synth.assemblies import of_plans

_KEY = "arn:aws:kms:us-east-1:123456789012:key/{}bcd-12ab-34cd-56ef-1234567890ab"
_TOPIC = "arn:aws:sns:us-east-1:123456789012:{}"
_BUCKET = "arn:aws:s3:::"
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


def synthesised(path: Path, queue: Mapping[str, Any], **sections: Any) -> dict[str, Any]:
    """Returns the resources of a model whose endpoint is asynchronous."""
    places = {"input": "s3://requests/in/", "output": "s3://answers/out/"}
    endpoint = {"mode": "async", "async_inference": places | dict(queue)}
    plan = plan_for(model_config("queued", endpoint=endpoint, **sections))
    resources: dict[str, Any] = of_plans(path, {"queued": plan}).template("queued")["Resources"]
    return resources


def rights(resources: Mapping[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """Returns actions and resources of the queue's rights, by the names of their statements."""
    (policy,) = (r for r in resources.values() if r["Type"] == "AWS::IAM::Policy")
    return {
        item["Sid"]: (_listed(item["Action"]), _listed(item["Resource"]))
        for item in policy["Properties"]["PolicyDocument"]["Statement"]
    }


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def test_the_role_may_read_requests_and_write_answers_and_nothing_else(tmp_path: Path):
    assert rights(synthesised(tmp_path, {})) == {
        "ReadRequests": (["s3:GetObject"], [f"{_BUCKET}requests/in/*"]),
        "WriteAnswers": (
            ["s3:AbortMultipartUpload", "s3:PutObject"],
            [f"{_BUCKET}answers/out/*"],
        ),
    }


def test_each_setting_brings_its_right(tmp_path: Path):
    queue = {
        "failure_output": "s3://answers/failed/",
        "success_topic_arn": _TOPIC.format("done"),
        "error_topic_arn": _TOPIC.format("failed"),
        "input_key_arn": _KEY.format("0000a"),
        "output_key_arn": _KEY.format("0000b"),
        "topic_key_arn": _KEY.format("0000c"),
    }
    found = rights(synthesised(tmp_path, queue))
    assert found["WriteAnswers"][1] == [f"{_BUCKET}answers/failed/*", f"{_BUCKET}answers/out/*"]
    assert found["TellTopics"] == (
        ["sns:Publish"],
        [_TOPIC.format("done"), _TOPIC.format("failed")],
    )
    both = ["kms:Decrypt", "kms:GenerateDataKey"]
    assert found["DecryptRequests"] == (["kms:Decrypt"], [_KEY.format("0000a")])
    assert found["EncryptAnswers"] == (both, [_KEY.format("0000b")])
    assert found["EncryptNotices"] == (both, [_KEY.format("0000c")])
    assert len(found) == 6


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Every alarm of an asynchronous endpoint that has them all, by its logical id."""
    alarms = {
        "server_error_rate_percent": 2,
        "client_error_rate_percent": 10,
        "model_latency_p99_milliseconds": 600,
        "oldest_request_seconds": 900,
        "memory_utilization_percent": 80,
        "disk_utilization_percent": 85,
        "gpu_memory_utilization_percent": 90,
    }
    rollout = {"rollback_alarms": ["server_error_rate", "model_latency_p99"]}
    found = synthesised(tmp_path_factory.mktemp("async"), {}, alarms=alarms, rollout=rollout)
    return {
        name: resource["Properties"]
        for name, resource in found.items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }


def test_every_alarm_reads_metrics_that_the_endpoint_has(watched: dict[str, Any]):
    of_endpoint = [{"Name": "EndpointName", "Value": "queued-local"}]
    of_variant = [*of_endpoint, {"Name": "VariantName", "Value": "AllTraffic"}]
    read = set[str]()
    for alarm in watched.values():
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


def test_the_alarms_of_a_queue_are_recognised_in_an_account(watched: dict[str, Any]):
    fields = {kind.field for alarm in watched.values() if (kind := kind_of(alarm))}
    assert fields == {kind.field for kind in ALARM_KINDS.values() if watch_of(kind, "async")}


def test_the_rate_of_failures_is_of_all_requests_that_left_the_queue(watched: dict[str, Any]):
    (alarm,) = (each for name, each in watched.items() if "ServerErrorRate" in name)
    read = {q["Id"]: q["MetricStat"] for q in alarm["Metrics"] if "MetricStat" in q}
    assert {name: (s["Metric"]["MetricName"], s["Stat"]) for name, s in read.items()} == {
        "failures": ("InvocationFailures", "Sum"),
        "client_errors": ("Invocation4XXErrors", "Sum"),
        "requests": ("TimeInBacklog", "SampleCount"),
    }
    assert alarm["Metrics"][-1]["Expression"] == "100 * (failures - client_errors) / requests"
    assert alarm["TreatMissingData"] == "notBreaching"
