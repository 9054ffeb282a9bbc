"""Waits of endpoints: a start, a download, a step of a rollout, the end of a container."""

import logging
from copy import deepcopy
from typing import Any

import pytest

from slipway.embedded_aws.hosting.fleets import model_download
from tests.embedded.hosting.conftest import CANARY, may
from tests.support.processes import is_running
from tests.support.roles import MAY_USE_OBJECTS, make_role


def test_container_that_is_never_ready_fails_after_its_timeout(hurried):
    variant = hurried.variant(
        hurried.model("unready"), ContainerStartupHealthCheckTimeoutInSeconds=60
    )
    reason = hurried.failure(variant)
    assert "did not answer /ping with 200 within 60 seconds" in reason
    assert not is_running(int(reason.rpartition(" ")[2]))


def test_download_is_bounded_by_its_timeout(hurried, monkeypatch):
    clock = iter(float(second) for second in range(0, 100_000, 100))

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return next(clock)

    monkeypatch.setattr(model_download, "time", Clock)
    variant = hurried.variant(hurried.model(), ModelDataDownloadTimeoutInSeconds=60)
    assert "Raise ModelDataDownloadTimeoutInSeconds" in hurried.failure(variant)


def test_canary_serves_both_fleets_while_it_waits(hurried):
    name = hurried.endpoint(mark="old ", InitialInstanceCount=2)
    config = hurried.config(hurried.variant(hurried.model(mark="new "), InitialInstanceCount=2))
    hurried.sagemaker.update_endpoint(
        EndpointName=name, EndpointConfigName=config, DeploymentConfig=CANARY
    )
    answers = []
    while hurried.sagemaker.describe_endpoint(EndpointName=name)["EndpointStatus"] == "Updating":
        answers.append(hurried.invoke(name))
    assert {"old x", "new x"} == set(answers)
    described = hurried.settled(name)
    assert described["EndpointConfigName"] == config
    assert described["LastDeploymentConfig"] == CANARY
    assert hurried.invoke(name) == "new x"


def raise_alarm(account: Any, name: str) -> dict[str, Any]:
    """Makes an alarm in the state ALARM; returns the canary that it guards."""
    account.put_alarm_in("ALARM", name)
    return {**CANARY, "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": name}]}}


def test_an_alarm_that_the_role_may_not_read_undoes_nothing(hurried, monkeypatch, caplog):
    iam = hurried.client("iam")
    may_read_another = deepcopy(MAY_USE_OBJECTS)
    (objects,) = may_read_another["Statement"]
    objects["Action"].remove("cloudwatch:DescribeAlarms")
    another = "arn:aws:cloudwatch:us-east-1:123456789012:alarm:another-*"
    may_read_another["Statement"].append(may("cloudwatch:DescribeAlarms", on=another))
    monkeypatch.setattr(hurried, "role", make_role(iam, "blind", may_read_another))
    name = hurried.endpoint(mark="old ", InitialInstanceCount=2)

    def update(alarm: str) -> str:
        model = hurried.model(mark="new ")
        config = hurried.config(hurried.variant(model, InitialInstanceCount=2))
        hurried.update(name, config, DeploymentConfig=raise_alarm(hurried, alarm))
        return hurried.invoke(name)

    # The right to read it is the only difference between the two.
    assert update("another-one") == "old x"
    with caplog.at_level(logging.WARNING, "slipway.embedded_aws.hosting.fleets.updates"):
        assert update("unread") == "new x"
    assert caplog.messages[-1] == (
        "alarm unread undoes no update, because arn:aws:iam::123456789012:role/blind may not "
        "cloudwatch:DescribeAlarms."
    )


@pytest.mark.size("all")
def test_an_update_that_takes_too_long_is_undone(hurried):
    name = hurried.endpoint(mark="old ")
    before = hurried.settled(name)["EndpointConfigName"]
    # 600 seconds are 12 here, and the health check would wait for 72.
    config = hurried.config(
        hurried.variant(hurried.model("unready"), ContainerStartupHealthCheckTimeoutInSeconds=3600)
    )
    policy = {
        "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0},
        "MaximumExecutionTimeoutInSeconds": 600,
    }
    described = hurried.update(name, config, DeploymentConfig={"BlueGreenUpdatePolicy": policy})
    assert described["EndpointConfigName"] == before
    assert described["FailureReason"] == (
        "The update was rolled back because it took longer than the 600 seconds of "
        "MaximumExecutionTimeoutInSeconds."
    )
    assert hurried.invoke(name) == "old x"


def test_container_that_ignores_sigterm_is_killed(hurried):
    name = hurried.endpoint("stubborn")
    pid = int(hurried.invoke(name, "pid"))
    hurried.delete(name)
    assert not is_running(pid)
