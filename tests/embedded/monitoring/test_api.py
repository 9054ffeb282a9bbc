"""CloudWatch's API, where it is not moto's."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.embedded.monitoring.conftest import on_metric
from tests.support.waiting import eventually


def test_new_alarm_is_unchecked_and_keeps_its_state_when_put_again(shared_account):
    shared_account.put_alarm("kept", Period=86_400, EvaluationPeriods=7)
    alarm = shared_account.alarm("kept")
    assert alarm["StateValue"] == "INSUFFICIENT_DATA"
    assert alarm["StateReason"] == "Unchecked: Initial alarm creation"
    assert "StateReasonData" not in alarm
    shared_account.cloudwatch.set_alarm_state(
        AlarmName="kept", StateValue="ALARM", StateReason="tried", StateReasonData='{"a":1}'
    )
    before = shared_account.alarm("kept")
    shared_account.put_alarm("kept", Period=86_400, EvaluationPeriods=7, Threshold=9)
    after = shared_account.alarm("kept")
    assert after["Threshold"] == 9.0
    for field in ("StateValue", "StateReason", "StateReasonData", "StateUpdatedTimestamp",
                  "StateTransitionedTimestamp"):  # fmt: skip
        assert after[field] == before[field]
    assert before["StateValue"] == "ALARM"


def test_filters_of_alarms_join(shared_account):
    cloudwatch = shared_account.cloudwatch
    for name, state in (("joined-a", "OK"), ("joined-b", "ALARM"), ("other", "ALARM")):
        shared_account.put_alarm(name, Period=86_400, EvaluationPeriods=7)
        cloudwatch.set_alarm_state(AlarmName=name, StateValue=state, StateReason="tried")

    def names(**filters: Any) -> list[str]:
        found = cloudwatch.describe_alarms(**filters, StateValue="ALARM")["MetricAlarms"]
        return [alarm["AlarmName"] for alarm in found]

    assert names(AlarmNames=["joined-a", "joined-b"]) == ["joined-b"]
    assert names(AlarmNames=["joined-a"]) == []
    assert names(AlarmNamePrefix="joined") == ["joined-b"]
    assert {"joined-b", "other"} <= set(names())
    assert len(cloudwatch.describe_alarms(AlarmNamePrefix="joined")["MetricAlarms"]) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"Statistic": "Mean"},
            "1 validation error detected: Value 'Mean' at 'statistic' failed to satisfy "
            "constraint: Member must satisfy enum value set: [SampleCount, Average, Sum, Minimum, "
            "Maximum]",
        ),
        (
            {"EvaluationWindow": {"SlidingWindow": {}}},
            "The embedded AWS does not evaluate alarms with EvaluationWindow.",
        ),
        (
            {"AlarmActions": ["arn:aws:sns:eu-west-1:123456789012:t"]},
            "Invalid region eu-west-1 specified. Only us-east-1 is supported.",
        ),
    ],
)
def test_what_could_not_be_evaluated_is_refused(shared_account, change, message):
    with pytest.raises(ClientError) as caught:
        shared_account.put_alarm("refused", **change)
    error = caught.value.response["Error"]
    assert (error["Code"], error["Message"]) == ("ValidationError", message)
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
    assert shared_account.cloudwatch.describe_alarms(AlarmNames=["refused"])["MetricAlarms"] == []


def test_refused_alarm_fails_its_stack(shared_account):
    properties = on_metric("stacked", ComparisonOperator="LessThanLowerThreshold")
    template = {"Resources": {"A": {"Type": "AWS::CloudWatch::Alarm", "Properties": properties}}}
    stacks = shared_account.client("cloudformation")
    stacks.create_stack(StackName="stacked", TemplateBody=json.dumps(template))

    def reasons() -> list[str]:
        events = stacks.describe_stack_events(StackName="stacked")["StackEvents"]
        return [
            event["ResourceStatusReason"]
            for event in events
            if event["ResourceStatus"] == "CREATE_FAILED"
        ]

    (reason,) = eventually(reasons)
    assert "does not evaluate LessThanLowerThreshold: it has no anomaly detection" in reason


@pytest.mark.parametrize(
    ("operation", "parameters"),
    [
        ("put_composite_alarm", {"AlarmName": "a", "AlarmRule": "ALARM(a)"}),
        ("get_metric_stream", {"Name": "a"}),
        ("put_anomaly_detector", {}),
    ],
)
def test_operations_that_are_not_there(shared_account, operation, parameters):
    with pytest.raises(ClientError) as caught:
        getattr(shared_account.cloudwatch, operation)(**parameters)
    name = operation.title().replace("_", "")
    assert caught.value.response["Error"]["Message"] == (
        f"The embedded AWS does not implement cloudwatch:{name}. docs/embedded-aws/services.md "
        "lists what it does."
    )


def test_a_metric_with_several_dimensions_is_listed_once(shared_account):
    cloudwatch = shared_account.cloudwatch
    dimensions = [{"Name": "EndpointName", "Value": "e"}, {"Name": "VariantName", "Value": "v"}]
    for minute in range(2):
        cloudwatch.put_metric_data(
            Namespace="listed",
            MetricData=[
                {
                    "MetricName": "m",
                    "Dimensions": dimensions[:count],
                    "Value": 1,
                    "Timestamp": datetime(2026, 11, 21, 7, minute, tzinfo=UTC),
                }
                for count in (1, 2)
            ],
        )
    listed = cloudwatch.list_metrics(Namespace="listed")["Metrics"]
    assert [each["Dimensions"] for each in listed] == [dimensions[:1], dimensions]


def test_the_history_has_each_change_of_state(shared_account):
    cloudwatch = shared_account.cloudwatch
    shared_account.put_alarm("told", TreatMissingData="ignore")
    begun = datetime.now(UTC)
    for state, reason in (("OK", "first"), ("ALARM", "second"), ("ALARM", "again"), ("OK", "end")):
        cloudwatch.set_alarm_state(AlarmName="told", StateValue=state, StateReason=reason)

    def summaries(**parameters: Any) -> list[str]:
        answer = cloudwatch.describe_alarm_history(AlarmName="told", **parameters)
        return [item["HistorySummary"] for item in answer["AlarmHistoryItems"]]

    told = [
        "Alarm updated from ALARM to OK",
        "Alarm updated from OK to ALARM",
        "Alarm updated from INSUFFICIENT_DATA to OK",
    ]
    assert summaries() == told
    assert summaries(ScanBy="TimestampAscending") == told[::-1]
    assert summaries(HistoryItemType="StateUpdate", StartDate=begun, MaxRecords=2) == told[:2]
    assert summaries(HistoryItemType="Action") == []
    assert summaries(EndDate=begun) == summaries(StartDate=datetime.now(UTC)) == []
    (item,) = cloudwatch.describe_alarm_history(AlarmName="told", MaxRecords=1)["AlarmHistoryItems"]
    assert json.loads(item["HistoryData"]) == {
        "version": "1.0",
        "oldState": {"stateValue": "ALARM", "stateReason": "again"},
        "newState": {"stateValue": "OK", "stateReason": "end"},
    }
    with pytest.raises(ClientError, match="historyItemType"):
        cloudwatch.describe_alarm_history(AlarmName="told", HistoryItemType="Anything")


def test_an_alarm_that_is_put_again_with_other_metrics_forgets_the_old_ones(shared_account):
    cloudwatch = shared_account.cloudwatch

    def state_after_put(**members: Any) -> str:
        members = {"TreatMissingData": "notBreaching", "Period": 86_400, **members}
        shared_account.put_alarm("moved", **members)
        return shared_account.state("moved")

    state_after_put()
    cloudwatch.set_alarm_state(AlarmName="moved", StateValue="ALARM", StateReason="a test")
    assert state_after_put(Threshold=6) == "ALARM"
    assert state_after_put(Dimensions=[{"Name": "EndpointConfigName", "Value": "new"}]) == "OK"
