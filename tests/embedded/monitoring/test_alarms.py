"""Alarms of a whole embedded AWS: through its API, on its endpoints, to its topics."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.waiting import eventually

REGION = "eu-central-1"


def sagemaker_metric(identifier: str, endpoint: str, metric: str) -> dict[str, Any]:
    dimensions = [
        {"Name": "EndpointName", "Value": endpoint},
        {"Name": "VariantName", "Value": "AllTraffic"},
    ]
    described = {"Namespace": "AWS/SageMaker", "MetricName": metric, "Dimensions": dimensions}
    stat = {"Metric": described, "Period": 60, "Stat": "Sum"}
    return {"Id": identifier, "MetricStat": stat, "ReturnData": False}


def error_rate(name: str, endpoint: str, **members: Any) -> dict[str, Any]:
    """The percentage of an endpoint's invocations of a minute that were answered 5XX."""
    return {
        "AlarmName": name,
        "Metrics": [
            sagemaker_metric("errors", endpoint, "Invocation5XXErrors"),
            sagemaker_metric("invocations", endpoint, "Invocations"),
            {
                "Id": "rate",
                "Expression": "100 * errors / invocations",
                "Label": "5XX rate (%)",
                "ReturnData": True,
            },
        ],
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 5,
        "EvaluationPeriods": 1,
        "TreatMissingData": "notBreaching",
        **members,
    }


def on_metric(name: str, **members: Any) -> dict[str, Any]:
    described = {
        "AlarmName": name,
        "Namespace": "tests",
        "MetricName": name,
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 5,
        "ComparisonOperator": "GreaterThanThreshold",
        **members,
    }
    return {member: value for member, value in described.items() if value is not None}


@pytest.mark.size("all")
def test_machines_alarm_knows_nothing_until_the_role_may_publish(account: Any, clock: Any) -> None:
    account.endpoint("machine")
    for name, treatment in (("memory", "missing"), ("trusting", "notBreaching")):
        account.cloudwatch.put_metric_alarm(
            **on_metric(
                name,
                Namespace="/aws/sagemaker/Endpoints",
                MetricName="MemoryUtilization",
                Dimensions=[
                    {"Name": "EndpointName", "Value": "machine"},
                    {"Name": "VariantName", "Value": "AllTraffic"},
                ],
                Statistic="Maximum",
                Threshold=0,
                TreatMissingData=treatment,
            )
        )
    clock.pass_minute()
    # The second alarm shows that both were evaluated, and what notBreaching would claim.
    eventually(lambda: account.state("trusting") == "OK")
    assert account.state("memory") == "INSUFFICIENT_DATA"

    statement = {
        "Effect": "Allow",
        "Action": "cloudwatch:PutMetricData",
        "Resource": "*",
        "Condition": {"StringEquals": {"cloudwatch:namespace": "/aws/sagemaker/Endpoints"}},
    }
    account.client("iam").put_role_policy(
        RoleName="monitoring",
        PolicyName="metrics",
        PolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [statement]}),
    )
    eventually(lambda: account.cloudwatch.list_metrics(MetricName="MemoryUtilization")["Metrics"])
    clock.pass_minute()
    eventually(lambda: account.state("memory") == "ALARM")


def test_failing_endpoint_raises_its_alarm(account: Any, clock: Any) -> None:
    account.endpoint("failing")
    mailbox = account.mailbox("failing")
    account.cloudwatch.put_metric_alarm(
        **error_rate(
            "failing-rate",
            "failing",
            AlarmDescription="answers 5XX",
            AlarmActions=[mailbox.topic],
            OKActions=[mailbox.topic],
            DatapointsToAlarm=1,
        )
    )

    def ask() -> None:
        account.fail("failing", times=3)
        account.invoke("failing")

    minute = account.within_a_minute(ask)
    clock.pass_minute()
    eventually(lambda: account.state("failing-rate") == "ALARM")

    alarm = account.alarm("failing-rate")
    assert alarm["StateReason"] == (
        f"Threshold Crossed: 1 out of the last 1 datapoints [75.0 ({minute:%d/%m/%y %H:%M:%S})] "
        "was greater than the threshold (5.0) (minimum 1 datapoint for OK -> ALARM transition)."
    )
    data = json.loads(alarm["StateReasonData"])
    assert data["recentDatapoints"] == [75.0]
    assert data["period"] == 60
    assert alarm["StateTransitionedTimestamp"] == alarm["StateUpdatedTimestamp"]

    envelope = mailbox.next()
    assert envelope["TopicArn"] == mailbox.topic
    assert envelope["Subject"] == 'ALARM: "failing-rate" in Europe (Frankfurt)'
    changed = alarm["StateUpdatedTimestamp"].astimezone(UTC)
    dimensions = [
        {"value": "failing", "name": "EndpointName"},
        {"value": "AllTraffic", "name": "VariantName"},
    ]
    configured = alarm["AlarmConfigurationUpdatedTimestamp"].astimezone(UTC)
    assert json.loads(envelope["Message"]) == {
        "AlarmName": "failing-rate",
        "AlarmDescription": "answers 5XX",
        "AWSAccountId": "123456789012",
        "AlarmConfigurationUpdatedTimestamp": cloudwatch_time(configured),
        "NewStateValue": "ALARM",
        "NewStateReason": alarm["StateReason"],
        "StateChangeTime": cloudwatch_time(changed),
        "Region": "Europe (Frankfurt)",
        "AlarmArn": f"arn:aws:cloudwatch:{REGION}:123456789012:alarm:failing-rate",
        "OldStateValue": "INSUFFICIENT_DATA",
        "OKActions": [mailbox.topic],
        "AlarmActions": [mailbox.topic],
        "InsufficientDataActions": [],
        "Trigger": {
            "Period": 60,
            "EvaluationPeriods": 1,
            "DatapointsToAlarm": 1,
            "ComparisonOperator": "GreaterThanThreshold",
            "Threshold": 5.0,
            "TreatMissingData": "notBreaching",
            "EvaluateLowSampleCountPercentile": "",
            "Metrics": [
                {
                    "Id": identifier,
                    "MetricStat": {
                        "Metric": {
                            "Dimensions": dimensions,
                            "MetricName": metric,
                            "Namespace": "AWS/SageMaker",
                        },
                        "Period": 60,
                        "Stat": "Sum",
                    },
                    "ReturnData": False,
                }
                for identifier, metric in (
                    ("errors", "Invocation5XXErrors"),
                    ("invocations", "Invocations"),
                )
            ]
            + [
                {
                    "Id": "rate",
                    "Label": "5XX rate (%)",
                    "Expression": "100 * errors / invocations",
                    "ReturnData": True,
                }
            ],
        },
    }

    # Nobody asks any more: once the minute has left the evaluation range, nothing is wrong.
    def over() -> bool:
        clock.pass_minute()
        return bool(account.state("failing-rate") == "OK")

    eventually(over)
    assert account.alarm("failing-rate")["StateReason"] == (
        "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint was "
        "treated as [NonBreaching]."
    )
    message = json.loads(mailbox.next()["Message"])
    assert (message["OldStateValue"], message["NewStateValue"]) == ("ALARM", "OK")
    assert mailbox.is_empty()


@pytest.mark.size("all")
def test_latency_percentiles(account: Any, clock: Any) -> None:
    account.endpoint("slow")
    for statistic in ("p50", "p90"):
        account.cloudwatch.put_metric_alarm(
            **on_metric(
                f"slow-{statistic}",
                Namespace="AWS/SageMaker",
                MetricName="ModelLatency",
                Dimensions=[
                    {"Name": "EndpointName", "Value": "slow"},
                    {"Name": "VariantName", "Value": "AllTraffic"},
                ],
                Statistic=None,
                ExtendedStatistic=statistic,
                Threshold=200_000,
            )
        )

    def ask() -> None:
        for _ in range(8):
            account.invoke("slow")
        for _ in range(2):
            account.invoke("slow", "sleep 0.3")

    account.within_a_minute(ask)
    clock.pass_minute()
    eventually(lambda: account.state("slow-p90") == "ALARM")
    eventually(lambda: account.state("slow-p50") == "OK")
    data = json.loads(account.alarm("slow-p90")["StateReasonData"])
    assert data["statistic"] == "p90"
    assert 300_000 <= data["recentDatapoints"][0] < 2_000_000
    assert data["evaluatedDatapoints"][0]["sampleCount"] == 10.0


def test_users_metrics_count_too(account: Any, clock: Any) -> None:
    account.cloudwatch.put_metric_alarm(
        **on_metric("users", ExtendedStatistic="p75", Statistic=None)
    )
    account.cloudwatch.put_metric_data(
        Namespace="tests",
        MetricData=[{"MetricName": "users", "Values": [1.0, 7.0], "Counts": [1.0, 3.0]}],
    )
    clock.pass_minute()
    eventually(lambda: account.state("users") == "ALARM")
    data = json.loads(account.alarm("users")["StateReasonData"])
    assert data["recentDatapoints"] == [7.0]


def test_state_set_by_hand_acts_and_lasts_until_the_next_evaluation(
    account: Any, clock: Any
) -> None:
    mailbox = account.mailbox("by-hand")
    account.cloudwatch.put_metric_alarm(
        **on_metric("by-hand", TreatMissingData="notBreaching", AlarmActions=[mailbox.topic])
    )
    account.cloudwatch.set_alarm_state(
        AlarmName="by-hand", StateValue="ALARM", StateReason="a test"
    )
    message = json.loads(mailbox.next()["Message"])
    assert (message["NewStateValue"], message["NewStateReason"]) == ("ALARM", "a test")
    assert message["Trigger"] == {
        "MetricName": "by-hand",
        "Namespace": "tests",
        "StatisticType": "Statistic",
        "Statistic": "SUM",
        "Unit": None,
        "Dimensions": [],
        "Period": 60,
        "EvaluationPeriods": 1,
        "ComparisonOperator": "GreaterThanThreshold",
        "Threshold": 5.0,
        "TreatMissingData": "notBreaching",
        "EvaluateLowSampleCountPercentile": "",
    }
    # The same state once more is no change.
    account.cloudwatch.set_alarm_state(AlarmName="by-hand", StateValue="ALARM", StateReason="again")
    assert account.alarm("by-hand")["StateReason"] == "again"
    clock.pass_minute()
    eventually(lambda: account.state("by-hand") == "OK")
    assert mailbox.is_empty()
    with pytest.raises(account.cloudwatch.exceptions.ResourceNotFound):
        account.cloudwatch.set_alarm_state(AlarmName="no", StateValue="OK", StateReason="x")


@pytest.mark.size("all")
def test_other_actions_are_not_carried_out_and_said_so(
    account: Any, clock: Any, caplog: pytest.LogCaptureFixture
) -> None:
    stop = f"arn:aws:automate:{REGION}:ec2:stop"
    gone = f"arn:aws:sns:{REGION}:123456789012:gone"
    pager = account.mailbox("pager")
    account.client("sns").subscribe(
        TopicArn=pager.topic, Protocol="https", Endpoint="https://pager.example.com/alarms"
    )
    mailbox = account.mailbox("others")
    account.cloudwatch.put_metric_alarm(
        **on_metric(
            "others",
            TreatMissingData="breaching",
            AlarmActions=[stop, gone, pager.topic, mailbox.topic],
        )
    )
    with caplog.at_level(logging.WARNING, "slipway.embedded_aws.monitoring"):
        clock.pass_minute()
        # A failure of one does not keep the next from being told.
        mailbox.next()
    lines = [record.getMessage() for record in caplog.records if '"others"' in record.getMessage()]
    assert lines[0] == (
        f'Alarm "others" is in a new state; its action {stop} was not carried out: the embedded '
        "AWS carries out SNS topics and scaling policies only."
    )
    assert lines[1].startswith(f'Alarm "others" could not write to {gone}: ')
    assert "does not exist" in lines[1]
    assert lines[2] == (
        f'Alarm "others" is in a new state; {pager.topic} was not told: it has the subscriber '
        "https://pager.example.com/alarms, and the embedded AWS reaches no network."
    )
    assert pager.is_empty()
    assert account.state("others") == "ALARM"


def canary(wait_seconds: int, alarm: str) -> dict[str, Any]:
    """A rollout in two steps; this server's time scale makes a fiftieth of the wait."""
    routing = {
        "Type": "CANARY",
        "CanarySize": {"Type": "CAPACITY_PERCENT", "Value": 50},
        "WaitIntervalInSeconds": wait_seconds,
    }
    return {
        "BlueGreenUpdatePolicy": {"TrafficRoutingConfiguration": routing},
        "AutoRollbackConfiguration": {"Alarms": [{"AlarmName": alarm}]},
    }


def test_alarm_that_goes_off_by_itself_undoes_a_rollout(account: Any, clock: Any) -> None:
    account.endpoint("guarded", InitialInstanceCount=2)
    account.cloudwatch.put_metric_alarm(**error_rate("guarded-rate", "guarded"))
    clock.pass_minute()
    eventually(lambda: account.state("guarded-rate") == "OK")
    sagemaker = account.client("sagemaker")

    # The alarm is fine, and so is the rollout.
    good = account.endpoint_config(InitialInstanceCount=2)
    sagemaker.update_endpoint(
        EndpointName="guarded",
        EndpointConfigName=good,
        DeploymentConfig=canary(wait_seconds=60, alarm="guarded-rate"),
    )
    assert account.settled("guarded")["EndpointConfigName"] == good

    sagemaker.update_endpoint(
        EndpointName="guarded",
        EndpointConfigName=account.endpoint_config(InitialInstanceCount=2),
        # 72 seconds: far longer than the alarm takes.
        DeploymentConfig=canary(wait_seconds=3600, alarm="guarded-rate"),
    )
    account.fail("guarded")
    clock.pass_minute()
    described = account.settled("guarded")
    assert described["EndpointConfigName"] == good
    assert described["FailureReason"] == (
        "The update was rolled back because of alarms in state ALARM: guarded-rate."
    )


@pytest.mark.size("all")
def test_alarm_goes_off_on_the_real_clock(real_account: Any) -> None:
    """Nothing else shows that the thread wakes by itself when a period is over."""
    account = real_account
    mailbox = account.mailbox("real")
    # So that the value is measured within the period.
    eventually(lambda: time.time() % 10 < 5, seconds=10)
    period = int(time.time()) // 10 * 10
    account.cloudwatch.put_metric_data(
        Namespace="tests", MetricData=[{"MetricName": "real", "Value": 7}]
    )
    account.cloudwatch.put_metric_alarm(
        **on_metric("real", Period=10, AlarmActions=[mailbox.topic])
    )
    eventually(lambda: account.state("real") == "ALARM", seconds=20)
    changed = account.alarm("real")["StateUpdatedTimestamp"].timestamp()
    # Half a second after the period; more only where the machine is busy.
    assert 0.5 <= changed - period - 10 < 5
    start = datetime.fromtimestamp(period, UTC)
    assert json.loads(mailbox.next()["Message"])["NewStateReason"] == (
        f"Threshold Crossed: 1 datapoint [7.0 ({start:%d/%m/%y %H:%M:%S})] was greater than the "
        "threshold (5.0)."
    )


def cloudwatch_time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+0000"
