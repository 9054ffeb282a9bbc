"""What PutMetricAlarm takes, and the words in which the rest is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from slipway.embedded_aws.monitoring.definitions import (
    AlarmRefusedError,
    Comparison,
    MetricSource,
    Missing,
    definition_of,
)

TEMPLATES = Path(__file__).parents[2] / "golden" / "templates"
SINGLE: dict[str, Any] = {
    "AlarmName": "a",
    "Namespace": "AWS/SageMaker",
    "MetricName": "ModelLatency",
    "Dimensions": [{"Name": "EndpointName", "Value": "e"}],
    "ExtendedStatistic": "p99",
    "Period": 60,
    "EvaluationPeriods": 3,
    "Threshold": 600_000,
    "ComparisonOperator": "GreaterThanThreshold",
}
NEEDED = (
    *("ComparisonOperator", "EvaluationPeriods", "Threshold"),
    *("MetricName", "Namespace", "Period"),
)
ONE_STATISTIC = "An alarm on a metric needs either Statistic or ExtendedStatistic, and not both."
NO_STATISTIC = (
    "The embedded AWS does not compute the statistic {}; it computes SampleCount, Average, Sum, "
    "Minimum, Maximum and percentiles from p0 to p100."
)
ONE_RESULT = "Exactly one element of the metrics list should return data."
NO_ID = (
    "is not an Id: it begins with a lowercase letter, goes on with letters, digits and "
    "underscores, and each is there once."
)


def stat(identifier: str, **members: Any) -> dict[str, Any]:
    metric = {"Namespace": "n", "MetricName": f"metric of {identifier}"}
    described = {"Metric": metric, "Period": 60, "Stat": "Sum", **members}
    return {"Id": identifier, "ReturnData": False, "MetricStat": described}


def formula(expression: str, identifier: str = "e", **members: Any) -> dict[str, Any]:
    return {"Id": identifier, "Expression": expression, "ReturnData": True, **members}


def with_metrics(*queries: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {
        "Metrics": list(queries),
        "EvaluationPeriods": 1,
        "Threshold": 1.0,
        "ComparisonOperator": "LessThanThreshold",
        **members,
    }


def watched_statistic(definition):
    source = definition.metrics.get(definition.watched)
    return source.statistic if source else None


def test_single_metric():
    definition = definition_of(SINGLE)
    (source,) = definition.metrics.values()
    assert source == MetricSource(
        "AWS/SageMaker", "ModelLatency", frozenset({("EndpointName", "e")}), "p99", None
    )
    assert (definition.period_seconds, definition.evaluation_periods) == (60, 3)
    assert definition.datapoints_to_alarm is None
    assert definition.comparison is Comparison.GREATER
    assert definition.threshold == 600_000.0
    assert definition.missing is Missing.MISSING
    assert watched_statistic(definition) == "p99"


def deployed(value: dict[str, Any]) -> Any:
    """A template's value as CloudFormation hands it on: an attribute of a resource is a text."""
    return ".".join(value["Fn::GetAtt"]) if "Fn::GetAtt" in value else value


def test_the_stacks_own_alarms():
    watched = set()
    for file in sorted(TEMPLATES.glob("*.json")):
        template = json.loads(file.read_text("utf-8"), object_hook=deployed)
        for resource in template["Resources"].values():
            if resource["Type"] == "AWS::CloudWatch::Alarm":
                definition = definition_of(resource["Properties"])
                watched.add(watched_statistic(definition) or definition.watched)
    assert watched == {"rate", "p99", "Maximum", "instances", "copies", "Average", "Sum", "used"}


def test_formulas_come_after_those_they_refer_to():
    definition = definition_of(
        with_metrics(
            formula("100 * MAX([errors, failures]) / invocations", "rate"),
            formula("model_errors - client_errors", "failures", ReturnData=False),
            *(stat(name) for name in ("errors", "client_errors", "model_errors", "invocations")),
        )
    )
    assert definition.watched == "rate"
    assert list(definition.expressions) == ["failures", "rate"]
    assert watched_statistic(definition) is None


def test_a_metric_in_the_list_can_be_the_one_watched():
    definition = definition_of(with_metrics({**stat("m", Unit="Count"), "ReturnData": None}))
    assert definition.watched == "m"
    assert definition.metrics["m"].unit == "Count"
    assert watched_statistic(definition) == "Sum"


def test_members_that_are_none_are_not_there():
    definition_of({**SINGLE, "Statistic": None, "Metrics": [], "ThresholdMetricId": None})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"WarmUpConfiguration": {"WarmUpPeriodDurationInMinutes": 1}},
            "The embedded AWS does not evaluate alarms with WarmUpConfiguration.",
        ),
        (
            {"ThresholdMetricId": "band"},
            "The embedded AWS does not evaluate alarms with ThresholdMetricId.",
        ),
        (
            {"ComparisonOperator": "GreaterThanUpperThreshold"},
            "The embedded AWS does not evaluate GreaterThanUpperThreshold: it has no anomaly "
            "detection. It evaluates GreaterThanOrEqualToThreshold, GreaterThanThreshold, "
            "LessThanThreshold, LessThanOrEqualToThreshold.",
        ),
        *(({name: None}, f"{name} must not be null.") for name in NEEDED),
        ({"Statistic": "Sum"}, ONE_STATISTIC),
        ({"ExtendedStatistic": None}, ONE_STATISTIC),
        ({"ExtendedStatistic": "tm99"}, NO_STATISTIC.format("tm99")),
        ({"Period": 15}, "Period must be 10, 20, 30 or a multiple of 60; it is 15."),
        ({"Period": 0}, "Period must be 10, 20, 30 or a multiple of 60; it is 0."),
        (
            {"EvaluationPeriods": 1441},
            "Period (60) times EvaluationPeriods (1441) must not be greater than 86400 seconds.",
        ),
        (
            {"Period": 3600, "EvaluationPeriods": 169},
            "Period (3600) times EvaluationPeriods (169) must not be greater than 604800 seconds.",
        ),
        (
            {"DatapointsToAlarm": 4},
            "DatapointsToAlarm (4) must not be greater than EvaluationPeriods (3).",
        ),
        (
            {"TreatMissingData": "breach"},
            "Option breach is not supported. Supported options for parameter TreatMissingData are "
            "missing, ignore, breaching, notBreaching.",
        ),
        (
            {"EvaluateLowSampleCountPercentile": "no"},
            "Option no is not supported. Supported options for parameter "
            "EvaluateLowSampleCountPercentile are evaluate, ignore.",
        ),
        (
            {"Metrics": [stat("m")]},
            "MetricName should not be set if list of Metrics is set.",
        ),
    ],
)
def test_refusals(change, message):
    with pytest.raises(AlarmRefusedError) as caught:
        definition_of({**SINGLE, **change})
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ([stat("m")], ONE_RESULT),
        ([formula("m"), formula("m", "f"), stat("m")], ONE_RESULT),
        ([formula("m + 1", "E"), stat("m")], f'"E" {NO_ID}'),
        ([formula("m + 1"), stat("m"), stat("m")], f'"m" {NO_ID}'),
        (
            [formula("m"), {**stat("m"), "AccountId": "210987654321"}],
            "The embedded AWS has no metrics of account 210987654321.",
        ),
        ([formula("m", Expression=None), stat("m")], '"e" needs either MetricStat or Expression.'),
        ([{**stat("m"), "Expression": "1"}, formula("m")],
         '"m" needs either MetricStat or Expression.'),
        ([formula("m")], "An alarm watches 1 to 10 metrics; this one has 0."),
        (
            [formula("m1"), *(stat(f"m{n}") for n in range(11))],
            "An alarm watches 1 to 10 metrics; this one has 11.",
        ),
        (
            [formula("a + b"), stat("a"), stat("b", Period=300)],
            "All metrics of an alarm need the same Period; these have [60, 300].",
        ),
        (
            [formula("m", Period=300), stat("m")],
            "All metrics of an alarm need the same Period; these have [60, 300].",
        ),
        ([formula("m"), stat("m", Period=None)], "Period must not be null."),
        ([formula("m"), stat("m", Stat="IQM")], NO_STATISTIC.format("IQM")),
        ([formula("m + n"), stat("m")], '"e" refers to "n", which is no Id.'),
        ([formula("e + m"), stat("m")], "These expressions refer to one another: e."),
        (
            [formula("f + m"), formula("e", "f", ReturnData=False), stat("m")],
            "These expressions refer to one another: e, f.",
        ),
        (
            [formula("RATE(m)"), stat("m")],
            'The embedded AWS cannot evaluate "e" (RATE(m)): the function RATE is not evaluated; '
            "only MAX([a, b]) is.",
        ),
    ],
)  # fmt: skip
def test_refusals_of_metrics(queries, message):
    with pytest.raises(AlarmRefusedError) as caught:
        definition_of(with_metrics(*queries))
    assert str(caught.value) == message
