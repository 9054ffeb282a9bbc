"""Waits of endpoints: a start, a download, a step of a rollout, the end of a container."""

from typing import Any

import pytest

from embedded_aws.hosting.fleets import model_download
from tests.embedded.hosting.conftest import CANARY
from tests.support.processes import is_running


def test_container_that_is_never_ready_fails_after_its_timeout(hurried: Any) -> None:
    variant = hurried.variant(
        hurried.model("unready"), ContainerStartupHealthCheckTimeoutInSeconds=60
    )
    reason = hurried.failure(variant)
    assert "did not answer /ping with 200 within 60 seconds" in reason
    assert not is_running(int(reason.rpartition(" ")[2]))


def test_download_is_bounded_by_its_timeout(hurried: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(float(second) for second in range(0, 100_000, 100))

    class Clock:
        @staticmethod
        def monotonic() -> float:
            return next(clock)

    monkeypatch.setattr(model_download, "time", Clock)
    variant = hurried.variant(hurried.model(), ModelDataDownloadTimeoutInSeconds=60)
    assert "Raise ModelDataDownloadTimeoutInSeconds" in hurried.failure(variant)


def test_canary_serves_both_fleets_while_it_waits(hurried: Any) -> None:
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


def test_alarm_undoes_the_update(hurried: Any) -> None:
    name = hurried.endpoint(mark="old ", InitialInstanceCount=2)
    before = hurried.settled(name)["EndpointConfigName"]
    hurried.cloudwatch.put_metric_alarm(
        AlarmName="errors", MetricName="Invocation5XXErrors", Namespace="AWS/SageMaker",
        Statistic="Sum", Period=60, EvaluationPeriods=1, Threshold=1,
        ComparisonOperator="GreaterThanThreshold",
    )  # fmt: skip
    hurried.cloudwatch.set_alarm_state(
        AlarmName="errors", StateValue="ALARM", StateReason="test", StateReasonData="{}"
    )
    config = hurried.config(hurried.variant(hurried.model(), InitialInstanceCount=2))
    deployment = {**CANARY, "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": "errors"}]}}
    described = hurried.update(name, config, DeploymentConfig=deployment)
    assert described["EndpointConfigName"] == before
    assert described["FailureReason"] == (
        "The update was rolled back because of alarms in state ALARM: errors."
    )
    assert hurried.invoke(name) == "old x"
    hurried.cloudwatch.set_alarm_state(AlarmName="errors", StateValue="OK", StateReason="test")
    described = hurried.update(name, config, DeploymentConfig=deployment)
    assert described["EndpointConfigName"] == config


@pytest.mark.size("all")
def test_an_update_that_takes_too_long_is_undone(hurried: Any) -> None:
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


def test_container_that_ignores_sigterm_is_killed(hurried: Any) -> None:
    name = hurried.endpoint("stubborn")
    pid = int(hurried.invoke(name, "pid"))
    hurried.delete(name)
    assert not is_running(pid)
