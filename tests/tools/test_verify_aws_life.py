"""The stages of `make verify-aws`: what has no effect in the account is not called good."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tools.verify_aws import life
from tools.verify_aws.commands import CheckError, CommandError, Session
from tools.verify_aws.life import Life
from tools.verify_aws.project import Target, write_project

TARGET = Target("123456789012", "us-east-1", "ml.m5.large")


class Account:
    """What the commands and CloudWatch answer; each test breaks it in one place."""

    def __init__(self) -> None:
        self.differences: list[Any] = []
        self.bound: int | None = 1
        self.lines = ["loaded"]
        self.values = {"Invocations": 1.0, "MemoryUtilization": 20.0}
        self.config = "config-1"

    def client(self, _service: str) -> Account:
        return self

    def get_metric_statistics(self, *, MetricName: str, **_: Any) -> Any:  # noqa: N803
        value = self.values.get(MetricName)
        return {"Datapoints": [] if value is None else [{"Maximum": value}]}

    def run(self, *_: str, seconds: float) -> str:
        assert seconds > 0
        variants = [{"min_instance_count": self.bound}]
        return json.dumps(
            {
                "differences": self.differences,
                "endpoint": {"variants": variants, "served": {"config": self.config}},
                "log_lines": self.lines,
                "alarms": ["latency", "memory"],
            }
        )


def stages(
    folder: Path, account: Any, run: Callable[..., str], *, limit_seconds: float = 60
) -> dict[str, Callable[[], str]]:
    session = Session(TARGET, account, run, folder, time.monotonic() + limit_seconds)
    return dict(Life(session).stages())


@pytest.fixture
def folder(tmp_path):
    write_project(tmp_path, TARGET)
    return tmp_path


def test_an_answer_of_another_handler_is_not_good(folder):
    def run(*command: str, seconds: float) -> str:
        assert command[:3] == ("slipway", "invoke", "verify-aws")
        return json.dumps({"answer": {"reversed": "slipway"}})

    with pytest.raises(CheckError, match="The endpoint answered"):
        stages(folder, Account(), run)["invoke"]()


def test_what_is_declared_has_to_be_there(folder):
    account = Account()
    declared = stages(folder, account, account.run)["what is declared"]
    assert declared() == "2 alarms, a scalable target and a log are there"
    account.lines = []
    with pytest.raises(CheckError, match="has no log line"):
        declared()
    account.bound = None
    with pytest.raises(CheckError, match="no scalable target of verify--verify-aws-aws"):
        declared()
    account.differences = [{"setting": "alarms.model_latency_p99_milliseconds"}]
    with pytest.raises(CheckError, match=r"not deployed as the files say.*model_latency_p99"):
        declared()


@pytest.mark.parametrize("value", [None, 0.0])
def test_a_metric_without_values_is_not_good(folder, monkeypatch, value):
    """As when the role may not publish metrics: its alarm would never go off."""
    monkeypatch.setattr(life, "METRICS_SECONDS", 0.0)
    account = Account()
    metrics = stages(folder, account, account.run)["metrics"]
    assert metrics() == "CloudWatch has values of Invocations and MemoryUtilization"
    account.values["MemoryUtilization"] = value  # type: ignore[assignment]
    told = "CloudWatch has no value of MemoryUtilization in /aws/sagemaker/Endpoints$"
    with pytest.raises(CheckError, match=told):
        metrics()


def test_a_change_of_an_alarm_may_change_nothing_else(folder):
    account = Account()

    def replaces(*command: str, seconds: float) -> str:
        if command[0] == "cdk":
            account.config = "config-2"
        return account.run(*command, seconds=seconds)

    kept = stages(folder, account, account.run)
    kept["what is declared"]()
    assert kept["change an alarm"]().startswith("the latency alarm")
    config = yaml.safe_load((folder / "model_configs" / "verify-aws.yaml").read_text())
    assert config["alarms"]["model_latency_p99_milliseconds"] == 1500
    replaced = stages(folder, account, replaces)
    replaced["what is declared"]()
    with pytest.raises(CheckError, match="replaced what the endpoint serves"):
        replaced["change an alarm"]()


def test_no_stage_begins_after_the_time_of_the_run(folder):
    with pytest.raises(CommandError, match="the time of this run is over; `--minutes` gives it"):
        stages(folder, Account(), Account().run, limit_seconds=0)["plan"]()
