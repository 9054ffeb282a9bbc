"""Explains an alarm's state: StateReason and StateReasonData, in CloudWatch's words.

CloudWatch documents a few of these texts; the others are as its users quote them. They mention "M
out of N" only if the alarm sets DatapointsToAlarm; other alarms get the shorter form.
"""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from slipway.embedded_aws.monitoring.definitions import AlarmDefinition, Comparison, Missing
from slipway.embedded_aws.monitoring.evaluation import Datapoint, State, Verdict

_VERSION = "1.0"
_SHOWN_DATAPOINTS = 5
_COMPARED = {
    Comparison.GREATER_OR_EQUAL: "greater than or equal to",
    Comparison.GREATER: "greater than",
    Comparison.LESS: "less than",
    Comparison.LESS_OR_EQUAL: "less than or equal to",
}
_TREATED = {Missing.BREACHING: "Breaching", Missing.NOT_BREACHING: "NonBreaching"}


def reason(definition: AlarmDefinition, verdict: Verdict) -> str:
    periods = definition.evaluation_periods
    if verdict.state is State.INSUFFICIENT_DATA:
        return f"Insufficient Data: {_count(periods, 'datapoint')} {_were(periods)} unknown."
    missing = sum(point.value is None for point in verdict.evaluated)
    if missing and _decided_by_missing(definition, verdict):
        received = periods - missing
        subject = _count(received, "datapoint") if received else "no datapoints"
        return (
            f"Threshold Crossed: {subject} {_were(received)} received for "
            f"{_count(periods, 'period')} and {_count(missing, 'missing datapoint')} "
            f"{_were(missing)} treated as [{_TREATED[definition.missing]}]."
        )
    return f"Threshold Crossed: {_crossing(definition, verdict)}."


def _decided_by_missing(definition: AlarmDefinition, verdict: Verdict) -> bool:
    if verdict.state is State.OK:
        return definition.missing is Missing.NOT_BREACHING
    needed = definition.datapoints_to_alarm or definition.evaluation_periods
    return definition.missing is Missing.BREACHING and len(verdict.crossing) < needed


def reason_data(definition: AlarmDefinition, verdict: Verdict, *, queried_at: datetime) -> str:
    existing = [point for point in reversed(verdict.evaluated) if point.value is not None]
    data: dict[str, Any] = {"version": _VERSION, "queryDate": timestamp(queried_at)}
    if existing:
        data["startDate"] = timestamp(existing[0].start)
    source = definition.metrics.get(definition.watched)
    if source is not None:
        if source.unit is not None:
            data["unit"] = source.unit
        data["statistic"] = source.statistic
    data["period"] = definition.period_seconds
    data["recentDatapoints"] = [point.value for point in existing]
    data["threshold"] = definition.threshold
    data["evaluatedDatapoints"] = [_evaluated(point) for point in verdict.evaluated]
    return json.dumps(data, separators=(",", ":"))


def timestamp(moment: datetime) -> str:
    """Returns a UTC time in the form of CloudWatch's JSON."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}+0000"


def _crossing(definition: AlarmDefinition, verdict: Verdict) -> str:
    points = verdict.crossing
    periods = definition.evaluation_periods
    relation = f"{_COMPARED[definition.comparison]} the threshold ({definition.threshold})"
    alarm = verdict.state is State.ALARM
    verb = f"{_were(len(points))} {'' if alarm else 'not '}{relation}"
    to_alarm = definition.datapoints_to_alarm
    if to_alarm is None:
        subject, transition = _count(len(points), "datapoint"), ""
    else:
        # One data point more than an alarm leaves room for.
        minimum = to_alarm if alarm else periods - to_alarm + 1
        change = "OK -> ALARM" if alarm else "ALARM -> OK"
        subject = f"{len(points)} out of the last {periods} datapoints"
        transition = f" (minimum {_count(minimum, 'datapoint')} for {change} transition)"
    if len(points) > _SHOWN_DATAPOINTS:
        shown = _list(points[:_SHOWN_DATAPOINTS])
        return (
            f"{subject} {verb}. The most recent datapoints which crossed the threshold: "
            f"{shown}{transition}"
        )
    return f"{subject} {_list(points)} {verb}{transition}"


def _list(points: Sequence[Datapoint]) -> str:
    return f"[{', '.join(f'{p.value} ({p.start:%d/%m/%y %H:%M:%S})' for p in points)}]"


def _evaluated(point: Datapoint) -> dict[str, Any]:
    data: dict[str, Any] = {"timestamp": timestamp(point.start)}
    if point.sample_count is not None:
        data["sampleCount"] = point.sample_count
    if point.value is not None:
        data["value"] = point.value
    return data


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
