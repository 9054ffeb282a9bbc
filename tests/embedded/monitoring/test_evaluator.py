"""The thread and its clock, on moto's own alarms and metric data; no server."""

import json
import logging
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.evaluator import AlarmEvaluator
from slipway.embedded_aws.monitoring.notifications import Notification, Notifier
from slipway.embedded_aws.monitoring.states import AlarmStates
from tests.support.accounts import connection_to
from tests.support.waiting import eventually

REGIONS = ("sa-east-1", "af-south-1")
SEVEN = datetime(2026, 11, 21, 7, tzinfo=UTC).timestamp()


class Clock:
    def __init__(self) -> None:
        self.now = SEVEN
        self.readings = 0

    def __call__(self) -> float:
        self.readings += 1
        return self.now


class Outbox(Notifier):
    def __init__(self) -> None:
        super().__init__(LoopbackClients(connection_to("http://localhost:1")))
        self.sent: list[Notification] = []

    def send(self, notification: Notification | None) -> None:
        if notification is not None:
            self.sent.append(notification)


class Bench:
    """Alarms and data in moto's back ends, and an evaluator that is asked by hand."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.outbox = Outbox()
        self.states = AlarmStates(self.outbox, self.clock)
        self.refreshed = 0
        self.evaluator = AlarmEvaluator(self.states, clock=self.clock, refresh=self._refresh)

    def _refresh(self) -> None:
        self.refreshed += 1

    def backend(self, region: str = REGIONS[0]) -> Any:
        return cloudwatch_backends[ACCOUNT_ID][region]

    def put(self, name: str = "a", region: str = REGIONS[0], **members: Any) -> Any:
        backend = self.backend(region)
        with self.states.put(backend.alarms, name):
            backend.put_metric_alarm(
                **{
                    "name": name,
                    "namespace": "n",
                    "metric_name": "m",
                    "comparison_operator": "GreaterThanThreshold",
                    "evaluation_periods": 1,
                    "period": 60,
                    "threshold": 5.0,
                    "statistic": "Sum",
                    "description": "",
                    "dimensions": [],
                    "alarm_actions": [],
                    **members,
                }
            )
        return backend.alarms[name]

    def measure(
        self, value: float, seconds: float, region: str = REGIONS[0], **members: Any
    ) -> None:
        """Adds a value that was measured so long after seven o'clock."""
        timestamp = datetime.fromtimestamp(SEVEN + seconds, UTC).replace(tzinfo=None)
        datum = {"MetricName": "m", "Value": value, "Timestamp": timestamp, **members}
        self.backend(region).put_metric_data("n", [datum])

    def minute(self, seconds: float = 60) -> None:
        self.clock.now = SEVEN + seconds + 0.6
        self.evaluator.evaluate(60, SEVEN + seconds)


def forget_alarms() -> None:
    """Empties CloudWatch in every region: moto's back ends belong to the process."""
    for backend in list(cloudwatch_backends[ACCOUNT_ID].values()):
        backend.reset()


@pytest.fixture
def bench() -> Iterator[Bench]:
    forget_alarms()
    yield Bench()
    forget_alarms()


def test_crossing_the_threshold(bench):
    alarm = bench.put()
    bench.measure(4, seconds=10)
    bench.measure(3, seconds=50)
    bench.minute()
    assert alarm.state_value == "ALARM"
    assert alarm.state_reason == (
        "Threshold Crossed: 1 datapoint [7.0 (21/11/26 07:00:00)] was greater than the threshold "
        "(5.0)."
    )
    data = json.loads(alarm.state_reason_data)
    assert data["queryDate"] == "2026-11-21T07:01:00.600+0000"
    assert data["evaluatedDatapoints"] == [
        {"timestamp": "2026-11-21T07:00:00.000+0000", "sampleCount": 2.0, "value": 7.0}
    ]
    changed = datetime(2026, 11, 21, 7, 1, 0, 600_000)
    assert alarm.state_updated_timestamp == alarm.state_transitioned_timestamp == changed
    assert bench.refreshed == 1
    # Only a change is written down.
    reason = alarm.state_reason
    bench.measure(9, seconds=70)
    bench.minute(120)
    assert (alarm.state_reason, alarm.state_updated_timestamp) == (reason, changed)
    bench.measure(1, seconds=130)
    bench.minute(180)
    assert alarm.state_value == "OK"


def test_periods_of_an_alarm_over_minutes_move_with_the_minute(bench):
    alarm = bench.put(period=300, comparison_operator="LessThanThreshold")
    bench.measure(1, seconds=30)
    bench.minute(60)
    # From 6:56 to 7:01, not from 6:55 to 7:00 or to 7:05.
    assert alarm.state_reason == (
        "Threshold Crossed: 1 datapoint [1.0 (21/11/26 06:56:00)] was less than the threshold "
        "(5.0)."
    )


@pytest.mark.parametrize(
    ("period", "evaluation_periods", "cadence_seconds"),
    [(10, 1, 10), (30, 2, 10), (60, 1, 60), (300, 3, 60), (86_400, 1, 60), (86_400, 2, 3600)],
)
def test_cadence(bench, period, evaluation_periods, cadence_seconds):
    alarm = bench.put(
        period=period, evaluation_periods=evaluation_periods, treat_missing_data="breaching"
    )
    for other in {10, 60, 3600} - {cadence_seconds}:
        bench.evaluator.evaluate(other, SEVEN)
    assert alarm.state_value == "INSUFFICIENT_DATA"
    bench.evaluator.evaluate(cadence_seconds, SEVEN)
    assert alarm.state_value == "ALARM"


def test_dimensions_and_units_are_exact(bench):
    dimensions = [{"Name": "x", "Value": "1"}, {"Name": "y", "Value": "2"}]
    alarm = bench.put(dimensions=dimensions, unit="Count", statistic="SampleCount",
                      comparison_operator="GreaterThanOrEqualToThreshold",
                      threshold=0.0)  # fmt: skip
    bench.measure(1, 10, Dimensions=dimensions[::-1], Unit="Count")
    bench.measure(1, 10, Dimensions=dimensions, Unit="Bytes")
    bench.measure(1, 10, Dimensions=dimensions)
    bench.measure(1, 10, Dimensions=dimensions[:1], Unit="Count")
    bench.measure(1, 10, Unit="Count")
    bench.minute()
    data = json.loads(alarm.state_reason_data)
    assert data["recentDatapoints"] == [1.0]
    assert data["unit"] == "Count"


def test_without_a_unit_all_count(bench):
    alarm, none = bench.put(), bench.put("none", unit="None")
    bench.measure(3, 10, Unit="Count")
    bench.measure(4, 10)
    bench.minute()
    assert alarm.state_value == "ALARM"
    assert json.loads(none.state_reason_data)["recentDatapoints"] == [4.0]


def test_every_region_has_its_own(bench):
    alarms = [bench.put(region=region) for region in REGIONS]
    bench.measure(7, 10, region=REGIONS[1])
    bench.minute()
    assert [alarm.state_value for alarm in alarms] == ["INSUFFICIENT_DATA", "ALARM"]


def test_a_state_that_a_user_set_is_overwritten(bench):
    alarm = bench.put(ok_actions=["arn:aws:sns:sa-east-1:123456789012:t"])
    bench.measure(1, 10)
    bench.minute()
    assert alarm.state_value == "OK"
    bench.backend().set_alarm_state("a", "a test", None, "ALARM")
    bench.minute(120)
    assert alarm.state_value == "OK"
    assert [sent.subject for sent in bench.outbox.sent] == [
        'OK: "a" in South America (Sao Paulo)',
        'OK: "a" in South America (Sao Paulo)',
    ]


def test_actions_belong_to_the_new_state(bench):
    topics = {state: f"arn:aws:sns:sa-east-1:123456789012:{state}" for state in ("o", "a", "i")}
    bench.put(alarm_actions=[topics["a"]], ok_actions=[topics["o"]],
              insufficient_data_actions=[topics["i"]])  # fmt: skip
    bench.measure(1, 10)
    bench.minute(60)
    bench.measure(9, 70)
    bench.minute(120)
    bench.minute(360)
    assert [sent.actions for sent in bench.outbox.sent] == [
        (topics["o"],), (topics["a"],), (topics["i"],),
    ]  # fmt: skip
    assert [json.loads(sent.message)["OldStateValue"] for sent in bench.outbox.sent] == [
        "INSUFFICIENT_DATA", "OK", "ALARM",
    ]  # fmt: skip
    bench.put("silent", alarm_actions=[topics["a"]], actions_enabled=False)
    bench.measure(9, 370)
    bench.minute(420)
    assert bench.backend().alarms["silent"].state_value == "ALARM"
    assert [json.loads(sent.message)["AlarmName"] for sent in bench.outbox.sent] == ["a"] * 4


def test_alarm_that_moto_made_is_not_silently_ignored(bench, caplog):
    # PutMetricAlarm would have refused it; moto's other services put alarms without asking.
    topic = "arn:aws:sns:sa-east-1:123456789012:t"
    alarm = bench.put(threshold_metric_id="band", insufficient_data_actions=[topic])
    fine = bench.put("fine", treat_missing_data="notBreaching")
    with caplog.at_level(logging.WARNING):
        bench.minute(60)
        bench.minute(120)
    message = "The embedded AWS does not evaluate alarms with ThresholdMetricId."
    assert [record.getMessage() for record in caplog.records] == [
        f'Alarm "a" in sa-east-1 is not evaluated: {message}'
    ]
    assert alarm.state_value == "INSUFFICIENT_DATA"
    assert alarm.state_reason == f"Not evaluated: {message}"
    # Its state is what it was: that is no change to act on.
    assert bench.outbox.sent == []
    assert fine.state_value == "OK"


def test_deleted_alarm_stays_deleted(bench):
    alarm = bench.put(treat_missing_data="breaching")
    bench.backend().delete_alarms(["a"])
    # The evaluator may have read it just before.
    bench.states.change(bench.backend().alarms, alarm, lambda _: pytest.fail("asked"))
    bench.minute()
    assert alarm.state_value == "INSUFFICIENT_DATA"
    assert bench.backend().alarms == {}


def test_one_broken_alarm_does_not_stop_the_others(bench, caplog):
    bench.put("broken", dimensions=[{"Name": "d", "Value": "1"}])
    fine = bench.put("fine", treat_missing_data="breaching")
    bench.measure(1, 10, Dimensions=[{"Name": "d", "Value": "1"}])
    del bench.backend().metric_data[0].value
    with caplog.at_level(logging.ERROR):
        bench.minute()
    assert fine.state_value == "ALARM"
    (record,) = caplog.records
    assert record.getMessage().startswith("alarm broken failed:\nTraceback")


def test_data_that_arrives_meanwhile_disturbs_nothing(bench):
    alarms = [bench.put(f"a{n}", treat_missing_data="breaching") for n in range(5)]
    stopping = threading.Event()

    def put() -> None:
        number = 0
        while not stopping.is_set():
            number += 1
            bench.measure(1, 10)
            bench.put(f"b{number % 50}")
            bench.backend().delete_alarms([f"b{(number + 25) % 50}"])

    thread = threading.Thread(target=put)
    thread.start()
    try:
        for minute in range(1, 15):
            bench.minute(60 * minute)
    finally:
        stopping.set()
        thread.join()
    assert {alarm.state_value for alarm in alarms} == {"ALARM"}


@pytest.fixture
def running(bench: Bench) -> Iterator[Bench]:
    bench.clock.now = SEVEN + 1
    bench.evaluator.start()
    yield bench
    bench.evaluator.close()


def looked_at(clock: Clock) -> None:
    """Waits until the thread has looked at the clock and done what was due."""
    enough = clock.readings + 8  # two rounds of four
    eventually(lambda: clock.readings > enough)


def test_alarms_are_due_half_a_second_after_the_minute(running):
    alarm = running.put(treat_missing_data="breaching")
    running.clock.now = SEVEN + 60.4
    looked_at(running.clock)
    assert alarm.state_value == "INSUFFICIENT_DATA"
    running.clock.now = SEVEN + 60.5
    eventually(lambda: alarm.state_value == "ALARM")
    assert alarm.state_updated_timestamp == datetime(2026, 11, 21, 7, 1, 0, 500_000)


def test_high_resolution_alarms_are_due_every_ten_seconds(running):
    often = running.put("often", period=10, treat_missing_data="breaching")
    slow = running.put("slow", treat_missing_data="breaching")
    running.clock.now = SEVEN + 10.5
    eventually(lambda: often.state_value == "ALARM")
    looked_at(running.clock)
    assert slow.state_value == "INSUFFICIENT_DATA"


def test_after_a_sleep_only_the_latest_minute_counts(running):
    alarm = running.put(treat_missing_data="notBreaching")
    running.measure(9, 30)
    running.measure(1, 86_400 - 30)
    running.clock.now = SEVEN + 86_400 + 25
    eventually(lambda: alarm.state_value == "OK")
    assert alarm.history[0][0] == "StateUpdate"
    assert len(alarm.history) == 1


def test_a_clock_that_is_set_back_does_not_stop_it(running):
    alarm = running.put(treat_missing_data="breaching")
    running.clock.now = SEVEN - 3600
    eventually(lambda: alarm.state_value == "ALARM")


def test_a_failure_does_not_end_it(running, caplog):
    alarm = running.put(treat_missing_data="breaching")
    running.measure(1, 10)
    running.backend().metric_data[0].timestamp = "today"
    with caplog.at_level(logging.ERROR):
        running.clock.now = SEVEN + 61
        eventually(lambda: caplog.records)
    assert caplog.records[0].getMessage().startswith("alarms were not evaluated:\nTraceback")
    running.backend().metric_data.clear()
    running.clock.now = SEVEN + 121
    eventually(lambda: alarm.state_value == "ALARM")


def test_stopping_is_prompt(bench):
    bench.evaluator.start()
    begun = time.monotonic()
    bench.evaluator.close()
    assert time.monotonic() - begun < 0.5
    # A server that was never started is stopped too.
    Bench().evaluator.close()


def test_without_alarms_nothing_is_read(running):
    running.measure(1, 10)
    running.clock.now = SEVEN + 3601
    looked_at(running.clock)
    assert running.refreshed == 0
