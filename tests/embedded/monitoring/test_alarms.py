"""Alarms of a whole embedded AWS: through its API, on its endpoints, to its topics."""

import json
import logging
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from slipway.embedded_aws.monitoring.notifications import _region_name
from tests.embedded.hosting.conftest import REGION
from tests.support.waiting import eventually


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


def test_failing_endpoint_raises_its_alarm(account, clock):
    account.prepare()
    endpoint = account.endpoint()
    mailbox = account.mailbox("failing")
    account.cloudwatch.put_metric_alarm(
        **error_rate(
            "failing-rate",
            endpoint,
            AlarmDescription="answers 5XX",
            AlarmActions=[mailbox.topic],
            OKActions=[mailbox.topic],
            DatapointsToAlarm=1,
        )
    )

    def ask() -> None:
        for _ in range(3):
            with pytest.raises(ClientError, match="ModelError"):
                account.invoke(endpoint, "error 500 no")
        account.invoke(endpoint)

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
    assert envelope["Subject"] == 'ALARM: "failing-rate" in US East (N. Virginia)'
    changed = alarm["StateUpdatedTimestamp"].astimezone(UTC)
    # A message has the members of dimensions in small letters.
    told = json.dumps(error_rate("", endpoint)["Metrics"])
    told = told.replace('"Name"', '"name"').replace('"Value"', '"value"')
    configured = alarm["AlarmConfigurationUpdatedTimestamp"].astimezone(UTC)
    assert json.loads(envelope["Message"]) == {
        "AlarmName": "failing-rate",
        "AlarmDescription": "answers 5XX",
        "AWSAccountId": "123456789012",
        "AlarmConfigurationUpdatedTimestamp": cloudwatch_time(configured),
        "NewStateValue": "ALARM",
        "NewStateReason": alarm["StateReason"],
        "StateChangeTime": cloudwatch_time(changed),
        "Region": "US East (N. Virginia)",
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
            "Metrics": json.loads(told),
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


def test_users_metrics_count_too(account, clock):
    account.put_alarm("users", ExtendedStatistic="p75", Statistic=None)
    account.cloudwatch.put_metric_data(
        Namespace="tests",
        MetricData=[{"MetricName": "users", "Values": [1.0, 7.0], "Counts": [1.0, 3.0]}],
    )
    clock.pass_minute()
    eventually(lambda: account.state("users") == "ALARM")
    data = json.loads(account.alarm("users")["StateReasonData"])
    assert data["recentDatapoints"] == [7.0]


def test_state_set_by_hand_acts_and_lasts_until_the_next_evaluation(account, clock):
    mailbox = account.mailbox("by-hand")
    account.put_alarm("by-hand", TreatMissingData="notBreaching", AlarmActions=[mailbox.topic])
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
def test_other_actions_are_not_carried_out_and_said_so(account, clock, caplog):
    stop = f"arn:aws:automate:{REGION}:ec2:stop"
    gone = f"arn:aws:sns:{REGION}:123456789012:gone"
    pager = account.mailbox("pager")
    account.client("sns").subscribe(
        TopicArn=pager.topic, Protocol="https", Endpoint="https://pager.example.com/alarms"
    )
    mailbox = account.mailbox("others")
    account.put_alarm(
        "others",
        TreatMissingData="breaching",
        AlarmActions=[stop, gone, pager.topic, mailbox.topic],
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


@pytest.mark.size("all")
def test_alarm_goes_off_on_the_real_clock(real_account):
    """Nothing else shows that the thread wakes by itself when a period is over."""
    account = real_account
    mailbox = account.mailbox("real")
    # So that the value is measured within the period.
    eventually(lambda: time.time() % 10 < 5, seconds=10)
    period = int(time.time()) // 10 * 10
    account.cloudwatch.put_metric_data(
        Namespace="tests", MetricData=[{"MetricName": "real", "Value": 7}]
    )
    account.put_alarm("real", Period=10, AlarmActions=[mailbox.topic])
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


def test_mail_names_a_region_as_cloudwatch_does():
    assert _region_name("eu-central-1") == "Europe (Frankfurt)"
    assert _region_name("xx-none-1") == "xx-none-1"
