"""The alarms that carry out step policies.

An alarm names its policy by the policy's ARN, which contains a random id. A policy that is deleted
with its target and put again therefore has another ARN. CloudFormation does not learn of it: its
resource keeps the earlier ARN, and writes it into the alarm whenever the alarm changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

# DescribeAlarms takes this many names.
_NAMES_PER_CALL = 100
_DEFINITION = (
    "ActionsEnabled",
    "AlarmActions",
    "AlarmDescription",
    "AlarmName",
    "ComparisonOperator",
    "DatapointsToAlarm",
    "Dimensions",
    "EvaluateLowSampleCountPercentile",
    "EvaluationPeriods",
    "ExtendedStatistic",
    "InsufficientDataActions",
    "MetricName",
    "Metrics",
    "Namespace",
    "OKActions",
    "Period",
    "Statistic",
    "Threshold",
    "ThresholdMetricId",
    "TreatMissingData",
    "Unit",
)
"""Members of PutMetricAlarm, of those that DescribeAlarms returns."""
_UNSET: tuple[Any, ...] = (None, "", [])


def point_alarms(cloudwatch: Any, names: list[str], live: Collection[str]) -> list[str]:
    """Puts the alarms again that carry out an earlier policy in place of a live one.

    Args:
        cloudwatch: boto3's client.
        names: of the alarms that may be changed.
        live: ARNs of the policies.

    Returns:
        The finished changes, one sentence part each.
    """
    by_place = {_place(arn): arn for arn in live}
    done = []
    for alarm in _described(cloudwatch, names) if by_place else ():
        before = alarm.get("AlarmActions", [])
        actions = [by_place.get(_place(action), action) for action in before]
        if actions != before:
            definition = {key: alarm[key] for key in _DEFINITION if alarm.get(key) not in _UNSET}
            cloudwatch.put_metric_alarm(**definition | {"AlarmActions": actions})
            done.append(f"pointed the alarm {alarm['AlarmName']} at its policy")
    return done


def _place(arn: str) -> str:
    """Returns the target and the name of a policy, which stay the same; the ARN if it has none."""
    return arn.partition(":resource/")[2] or arn


def _described(cloudwatch: Any, names: list[str]) -> Iterator[dict[str, Any]]:
    for begin in range(0, len(names), _NAMES_PER_CALL):
        chunk = names[begin : begin + _NAMES_PER_CALL]
        answer = cloudwatch.describe_alarms(AlarmNames=chunk, MaxRecords=_NAMES_PER_CALL)
        yield from answer["MetricAlarms"]
