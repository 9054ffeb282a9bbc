"""The stages of `make verify-aws`: what has no effect in the account is not called good."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools.verify_aws import life
from tools.verify_aws.commands import CommandError, Deployment, Session
from tools.verify_aws.life import Life
from tools.verify_aws.project import Target, write_project
from tools.verify_aws.report import CheckError

TARGET = Target("123456789012", "us-east-1", "ml.m5.large")


class Account:
    """What the services answer, by operation; the account that each test breaks in one place."""

    def __init__(self) -> None:
        self.thresholds = [1.0, 2_000_000.0]
        self.targets = [{"ResourceId": "x"}]
        self.streams = [{"logStreamName": "x"}]
        self.values = {"Invocations": 1.0, "MemoryUtilization": 20.0}
        self.config = "config-1"

    def client(self, _service: str) -> Account:
        return self

    def describe_scalable_targets(self, **_: Any) -> Any:
        return {"ScalableTargets": self.targets}

    def describe_log_streams(self, **_: Any) -> Any:
        return {"logStreams": self.streams}

    def describe_endpoint(self, **_: Any) -> Any:
        return {"EndpointConfigName": self.config}

    def get_metric_statistics(self, *, MetricName: str, **_: Any) -> Any:  # noqa: N803
        value = self.values.get(MetricName)
        return {"Datapoints": [] if value is None else [{"Maximum": value}]}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "describe_alarms"
        return self

    def paginate(self, **_: Any) -> Any:
        watched = [{"Name": "EndpointName", "Value": TARGET.endpoint}]
        return [
            {"MetricAlarms": [{"Threshold": each, "MetricName": "M", "Dimensions": watched}]}
            for each in self.thresholds
        ]


def stage(
    name: str, folder: Path, account: Any, run: Callable[..., str], *, limit_seconds: float = 60
) -> Callable[[], str]:
    session = Session(Deployment(TARGET, account, run, folder), limit_seconds)
    return dict(Life(session).stages())[name]


def nothing(*_: str, seconds: float) -> str:
    assert seconds > 0
    return ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_project(tmp_path, TARGET)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "answer", "told"),
    [
        ("invoke", {"answer": {"reversed": "slipway"}}, "the endpoint answered"),
        ("status", {"troubles": ["the endpoint is Failed"]}, "the endpoint is Failed"),
    ],
)
def test_a_command_with_another_answer_is_not_good(
    folder: Path, name: str, answer: dict[str, Any], told: str
) -> None:
    def run(*command: str, seconds: float) -> str:
        assert command[:3] == ("slipway", name, "verify-aws")
        return json.dumps(answer)

    with pytest.raises(CheckError, match=told):
        stage(name, folder, Account(), run)()


def test_what_is_declared_has_to_be_there(folder: Path) -> None:
    account = Account()
    declared = stage("what is declared", folder, account, nothing)
    assert declared() == "2 alarms, a scalable target and a log are there"
    account.streams = []
    with pytest.raises(CheckError, match="has no log stream"):
        declared()
    account.thresholds = [1.0]
    with pytest.raises(CheckError, match=r"no alarm goes off at 2000000 microseconds, but at \[1"):
        declared()
    account.targets = []
    with pytest.raises(CheckError, match="no scalable target of verify--verify-aws-aws"):
        declared()


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_metric_without_values_is_not_good(
    folder: Path, monkeypatch: pytest.MonkeyPatch, value: float | None
) -> None:
    """As when the role may not publish metrics: its alarm would never go off."""
    monkeypatch.setattr(life, "METRICS_SECONDS", 0.0)
    account = Account()
    metrics = stage("metrics", folder, account, nothing)
    assert metrics() == "CloudWatch has values of Invocations and MemoryUtilization"
    account.values["MemoryUtilization"] = value  # type: ignore[assignment]
    told = "CloudWatch has no value of MemoryUtilization in /aws/sagemaker/Endpoints$"
    with pytest.raises(CheckError, match=told):
        metrics()


def test_a_change_of_an_alarm_may_change_nothing_else(folder: Path) -> None:
    account = Account()

    def deploys(*_: str, seconds: float) -> str:
        account.thresholds = [1_500_000.0]
        return ""

    def replaces(*_: str, seconds: float) -> str:
        account.config = "config-2"
        return deploys(seconds=seconds)

    with pytest.raises(CheckError, match="no alarm goes off at 1500000"):
        stage("change an alarm", folder, account, nothing)()
    assert stage("change an alarm", folder, account, deploys)().startswith("the latency alarm")
    with pytest.raises(CheckError, match="replaced what the endpoint serves"):
        stage("change an alarm", folder, account, replaces)()


def test_no_stage_begins_after_the_time_of_the_run(folder: Path) -> None:
    with pytest.raises(CommandError, match="the time of this run is over; `--minutes` gives it"):
        stage("plan", folder, Account(), nothing, limit_seconds=0)()
