"""The state of an alarm and its reason, from data points: the user guide's tables and beyond."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from moto.cloudwatch.models import MetricDatum

from slipway.embedded_aws.monitoring.definitions import AlarmDefinition, definition_of
from slipway.embedded_aws.monitoring.evaluation import (
    Datapoint,
    State,
    Verdict,
    datapoints_of,
    evaluate,
    range_periods,
)
from slipway.embedded_aws.monitoring.reasons import reason, reason_data
from slipway.embedded_aws.monitoring.samples import Samples

SEVEN = datetime(2026, 11, 21, 7, tzinfo=UTC)
THRESHOLD = 5.0
# What a data point of the user guide's tables is worth here.
VALUES = {"0": 0.0, "X": 100.0, "-": None}
KEPT = "kept"
STATES = {"OK": State.OK, "ALARM": State.ALARM, "INSUFFICIENT": State.INSUFFICIENT_DATA}


def alarm(**members: Any) -> AlarmDefinition:
    return definition_of(
        {
            "Namespace": "n",
            "MetricName": "m",
            "Statistic": "Sum",
            "Period": 60,
            "EvaluationPeriods": 1,
            "Threshold": THRESHOLD,
            "ComparisonOperator": "GreaterThanThreshold",
            **members,
        }
    )


def datapoints(values: Sequence[float | None], *, samples: float = 1) -> list[Datapoint]:
    """One a minute, the first at seven o'clock."""
    return [
        Datapoint(SEVEN + timedelta(minutes=index), value, None if value is None else samples)
        for index, value in enumerate(values)
    ]


def drawn(picture: str) -> list[Datapoint]:
    return datapoints([VALUES[sign] for sign in picture.split()])


def decided(definition: AlarmDefinition, picture: str) -> Verdict:
    return evaluate(definition, drawn(picture))


# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html, and
# its text on premature transitions. What `- - - - X` comes to is from older versions of the page.
THREE_OF_THREE = [
    # data points, missing, ignore, breaching, notBreaching
    ("0 - X - X", "OK", "OK", "OK", "OK"),
    ("0 - - - -", "OK", "OK", "OK", "OK"),
    ("- - - - -", "INSUFFICIENT", KEPT, "ALARM", "OK"),
    ("0 X X - X", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("- - X - -", "ALARM", KEPT, "ALARM", "OK"),
    ("X - - - -", "ALARM", KEPT, "ALARM", "OK"),
    ("- - - - X", "INSUFFICIENT", KEPT, "ALARM", "OK"),
    ("- - - X -", "INSUFFICIENT", KEPT, "ALARM", "OK"),
    ("- - - X 0", "OK", "OK", "OK", "OK"),
    ("- - X - 0", "OK", "OK", "OK", "OK"),
    # Of five, the latest three count.
    ("X X 0 0 0", "OK", "OK", "OK", "OK"),
    ("0 0 X X X", "ALARM", "ALARM", "ALARM", "ALARM"),
]
TWO_OF_THREE = [
    ("0 - X - X", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 0 X 0 X", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 - X - -", "OK", "OK", "ALARM", "OK"),
    ("- - - - 0", "OK", "OK", "ALARM", "OK"),
    ("- - - X -", "ALARM", KEPT, "ALARM", "OK"),
    ("- - - - X", "INSUFFICIENT", KEPT, "ALARM", "OK"),
    ("- - X X -", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("X X 0 0 X", "OK", "OK", "OK", "OK"),
]
ONE_OF_ONE = [
    ("- - X", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("X X 0", "OK", "OK", "OK", "OK"),
    # The metric has stopped: its last point is evaluated again until it leaves the range.
    ("- X -", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("X - -", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 - -", "OK", "OK", "OK", "OK"),
    ("- - -", "INSUFFICIENT", KEPT, "ALARM", "OK"),
]
ONE_OF_THREE = [
    ("- - - - X", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 X - - -", "ALARM", "ALARM", "ALARM", "ALARM"),
    ("0 0 - - -", "OK", "OK", "ALARM", "OK"),
]


def table() -> list[Any]:
    tables = {
        (3, 3): THREE_OF_THREE,
        (2, 3): TWO_OF_THREE,
        (1, 1): ONE_OF_ONE,
        (1, 3): ONE_OF_THREE,
    }
    treatments = ("missing", "ignore", "breaching", "notBreaching")
    return [
        pytest.param(needed, periods, treatment, picture, state,
                     id=f"{needed}of{periods}-{treatment}-{picture}")
        for (needed, periods), rows in tables.items()
        for picture, *states in rows
        for treatment, state in zip(treatments, states, strict=True)
    ]  # fmt: skip


@pytest.mark.parametrize(("needed", "periods", "treatment", "picture", "state"), table())
def test_table(needed, periods, treatment, picture, state):
    definition = alarm(
        EvaluationPeriods=periods, DatapointsToAlarm=needed, TreatMissingData=treatment
    )
    assert range_periods(definition) == len(picture.split())
    verdict = evaluate(definition, drawn(picture))
    if state == KEPT:
        assert verdict is None
    else:
        assert verdict.state is STATES[state]
        assert len(verdict.evaluated) == periods


def test_missing_is_the_default_and_dynamodb_ignores():
    assert decided(alarm(), "- - -").state is State.INSUFFICIENT_DATA
    assert evaluate(alarm(Namespace="AWS/DynamoDB"), drawn("- - -")) is None
    chosen = alarm(Namespace="AWS/DynamoDB", TreatMissingData="breaching")
    assert decided(chosen, "- - -").state is State.ALARM


@pytest.mark.parametrize(
    ("operator", "below", "equal", "above"),
    [
        ("GreaterThanThreshold", "OK", "OK", "ALARM"),
        ("GreaterThanOrEqualToThreshold", "OK", "ALARM", "ALARM"),
        ("LessThanThreshold", "ALARM", "OK", "OK"),
        ("LessThanOrEqualToThreshold", "ALARM", "ALARM", "OK"),
    ],
)
def test_comparisons(operator, below, equal, above):
    definition = alarm(ComparisonOperator=operator)
    for value, state in ((4.9, below), (5.0, equal), (5.1, above)):
        assert evaluate(definition, datapoints([None, None, value])).state == state


@pytest.mark.parametrize(
    ("statistic", "samples", "evaluated"),
    [
        ("p99", 999, False),
        ("p99", 1000, True),
        ("p50", 19, False),
        ("p50", 20, True),
        ("p10", 99, False),
        ("p10", 100, True),
        ("p100", 1, True),
    ],
)
def test_percentile_of_few_samples(statistic, samples, evaluated):
    points = datapoints([None, None, 100.0], samples=samples)
    members = {"Statistic": None, "ExtendedStatistic": statistic}
    ignoring = alarm(**members, EvaluateLowSampleCountPercentile="ignore")
    assert (evaluate(ignoring, points) is not None) is evaluated
    assert evaluate(alarm(**members), points) is not None
    # It says nothing about other statistics.
    assert evaluate(alarm(EvaluateLowSampleCountPercentile="ignore"), points) is not None


def sampled(*numbers: float) -> Samples:
    samples = Samples()
    for number in numbers:
        samples.add(MetricDatum("n", "m", number, [], SEVEN))
    return samples


def test_formula_over_two_metrics():
    def query(identifier: str) -> dict[str, Any]:
        metric = {"Namespace": "n", "MetricName": identifier}
        return {
            "Id": identifier,
            "ReturnData": False,
            "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"},
        }

    definition = definition_of(
        {
            "Metrics": [
                {"Id": "rate", "Expression": "100 * errors / invocations"},
                query("errors"),
                query("invocations"),
            ],
            "EvaluationPeriods": 1,
            "Threshold": THRESHOLD,
            "ComparisonOperator": "GreaterThanThreshold",
        }
    )
    samples = {
        "errors": [sampled(1), sampled(), sampled(1)],
        "invocations": [sampled(4), sampled(4), sampled()],
    }
    starts = [point.start for point in datapoints([None] * 3)]
    points = datapoints_of(definition, samples, starts)
    # No errors at all is none of them; no invocations at all is a division by zero.
    assert [point.value for point in points] == [25.0, 0.0, None]
    assert all(point.sample_count is None for point in points)
    verdict = evaluate(definition, points)
    assert json.loads(reason_data(definition, verdict, queried_at=SEVEN)) == {
        "version": "1.0",
        "queryDate": "2026-11-21T07:00:00.000+0000",
        "startDate": "2026-11-21T07:01:00.000+0000",
        "period": 60,
        "recentDatapoints": [0.0],
        "threshold": 5.0,
        "evaluatedDatapoints": [{"timestamp": "2026-11-21T07:01:00.000+0000", "value": 0.0}],
    }


@pytest.mark.parametrize(
    ("members", "picture", "expected"),
    [
        (
            {"DatapointsToAlarm": 1},
            "- - X",
            "Threshold Crossed: 1 out of the last 1 datapoints [100.0 (21/11/26 07:02:00)] was "
            "greater than the threshold (5.0) (minimum 1 datapoint for OK -> ALARM transition).",
        ),
        (
            {"DatapointsToAlarm": 1},
            "- - 0",
            "Threshold Crossed: 1 out of the last 1 datapoints [0.0 (21/11/26 07:02:00)] was not "
            "greater than the threshold (5.0) (minimum 1 datapoint for ALARM -> OK transition).",
        ),
        (
            {},
            "- - X",
            "Threshold Crossed: 1 datapoint [100.0 (21/11/26 07:02:00)] was greater than the "
            "threshold (5.0).",
        ),
        (
            {"EvaluationPeriods": 2},
            "- - X X",
            "Threshold Crossed: 2 datapoints [100.0 (21/11/26 07:03:00), 100.0 (21/11/26 "
            "07:02:00)] were greater than the threshold (5.0).",
        ),
        (
            {"EvaluationPeriods": 3, "DatapointsToAlarm": 2},
            "- - X 0 X",
            "Threshold Crossed: 2 out of the last 3 datapoints [100.0 (21/11/26 07:04:00), 100.0 "
            "(21/11/26 07:02:00)] were greater than the threshold (5.0) (minimum 2 datapoints for "
            "OK -> ALARM transition).",
        ),
        (
            {"EvaluationPeriods": 3, "DatapointsToAlarm": 3},
            "X X X 0 0",
            "Threshold Crossed: 2 out of the last 3 datapoints [0.0 (21/11/26 07:04:00), 0.0 "
            "(21/11/26 07:03:00)] were not greater than the threshold (5.0) (minimum 1 datapoint "
            "for ALARM -> OK transition).",
        ),
        (
            {"EvaluationPeriods": 6, "ComparisonOperator": "GreaterThanOrEqualToThreshold"},
            "- - X X X X X X",
            "Threshold Crossed: 6 datapoints were greater than or equal to the threshold (5.0). "
            "The most recent datapoints which crossed the threshold: [100.0 (21/11/26 07:07:00), "
            "100.0 (21/11/26 07:06:00), 100.0 (21/11/26 07:05:00), 100.0 (21/11/26 07:04:00), "
            "100.0 (21/11/26 07:03:00)].",
        ),
        (
            {"ComparisonOperator": "LessThanThreshold"},
            "- - 0",
            "Threshold Crossed: 1 datapoint [0.0 (21/11/26 07:02:00)] was less than the threshold "
            "(5.0).",
        ),
        (
            {"ComparisonOperator": "LessThanOrEqualToThreshold"},
            "- - X",
            "Threshold Crossed: 1 datapoint [100.0 (21/11/26 07:02:00)] was not less than or equal "
            "to the threshold (5.0).",
        ),
        ({}, "- - -", "Insufficient Data: 1 datapoint was unknown."),
        ({"EvaluationPeriods": 3}, "- - - - X", "Insufficient Data: 3 datapoints were unknown."),
        (
            {"TreatMissingData": "notBreaching"},
            "- - -",
            "Threshold Crossed: no datapoints were received for 1 period and 1 missing datapoint "
            "was treated as [NonBreaching].",
        ),
        (
            {"TreatMissingData": "breaching", "EvaluationPeriods": 3},
            "- - - - -",
            "Threshold Crossed: no datapoints were received for 3 periods and 3 missing datapoints "
            "were treated as [Breaching].",
        ),
        (
            {"TreatMissingData": "breaching", "EvaluationPeriods": 3},
            "- - - - X",
            "Threshold Crossed: 1 datapoint was received for 3 periods and 2 missing datapoints "
            "were treated as [Breaching].",
        ),
        (
            {"TreatMissingData": "notBreaching", "EvaluationPeriods": 2},
            "- - - 0",
            "Threshold Crossed: 1 datapoint was received for 2 periods and 1 missing datapoint was "
            "treated as [NonBreaching].",
        ),
        (
            {"TreatMissingData": "notBreaching", "EvaluationPeriods": 3, "DatapointsToAlarm": 1},
            "- - - - X",
            "Threshold Crossed: 1 out of the last 3 datapoints [100.0 (21/11/26 07:04:00)] was "
            "greater than the threshold (5.0) (minimum 1 datapoint for OK -> ALARM transition).",
        ),
        (
            {"EvaluationPeriods": 3},
            "- - X - -",
            "Threshold Crossed: 1 datapoint [100.0 (21/11/26 07:02:00)] was greater than the "
            "threshold (5.0).",
        ),
    ],
)
def test_reasons(members, picture, expected):
    definition = alarm(**members)
    assert reason(definition, decided(definition, picture)) == expected


def test_reason_data():
    definition = alarm(EvaluationPeriods=2, Unit="Count", TreatMissingData="notBreaching")
    points = datapoints([None, None, 7.0, None], samples=3)
    verdict = evaluate(definition, points)
    queried_at = SEVEN + timedelta(minutes=4, milliseconds=1234.5)
    text = reason_data(definition, verdict, queried_at=queried_at)
    assert text == (
        '{"version":"1.0","queryDate":"2026-11-21T07:04:01.234+0000",'
        '"startDate":"2026-11-21T07:02:00.000+0000","unit":"Count","statistic":"Sum","period":60,'
        '"recentDatapoints":[7.0],"threshold":5.0,"evaluatedDatapoints":['
        '{"timestamp":"2026-11-21T07:03:00.000+0000"},'
        '{"timestamp":"2026-11-21T07:02:00.000+0000","sampleCount":3,"value":7.0}]}'
    )


def test_reason_data_without_data():
    definition = alarm(Statistic=None, ExtendedStatistic="p99")
    data = json.loads(reason_data(definition, decided(definition, "- - -"), queried_at=SEVEN))
    assert "startDate" not in data
    assert data["statistic"] == "p99"
    assert data["recentDatapoints"] == []
    assert data["evaluatedDatapoints"] == [{"timestamp": "2026-11-21T07:02:00.000+0000"}]


@given(
    st.integers(1, 5).flatmap(lambda n: st.tuples(st.integers(1, n), st.just(n))),
    st.sampled_from(["missing", "ignore", "breaching", "notBreaching"]),
    st.data(),
)
def test_a_full_range_is_counted(numbers, treatment, data):
    needed, periods = numbers
    definition = alarm(
        EvaluationPeriods=periods, DatapointsToAlarm=needed, TreatMissingData=treatment
    )
    values = data.draw(st.lists(st.sampled_from([0.0, 100.0]), min_size=periods + 2,
                                max_size=periods + 2))  # fmt: skip
    verdict = evaluate(definition, datapoints(values))
    breaching = sum(value > THRESHOLD for value in values[-periods:])
    assert verdict.state == (State.ALARM if breaching >= needed else State.OK)
    assert [point.value for point in verdict.evaluated] == values[: -periods - 1 : -1]


@given(st.data(), st.sampled_from(["missing", "ignore", "breaching", "notBreaching"]))
def test_every_verdict_has_a_reason(data, treatment):
    periods = data.draw(st.integers(1, 8))
    needed = data.draw(st.one_of(st.none(), st.integers(1, periods)))
    definition = alarm(
        EvaluationPeriods=periods, DatapointsToAlarm=needed, TreatMissingData=treatment
    )
    values = data.draw(st.lists(st.sampled_from([None, 0.0, 100.0]), min_size=periods + 2,
                                max_size=periods + 2))  # fmt: skip
    verdict = evaluate(definition, datapoints(values))
    if verdict is None:
        assert treatment == "ignore"
        return
    assert len(verdict.evaluated) == periods
    assert "[]" not in reason(definition, verdict)
    assert json.loads(reason_data(definition, verdict, queried_at=SEVEN))["threshold"] == 5.0
    insufficient = verdict.state is State.INSUFFICIENT_DATA
    assert not insufficient or treatment == "missing"
