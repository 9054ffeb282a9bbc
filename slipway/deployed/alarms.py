"""Alarms of CloudWatch by the names of the fields of `alarms`."""

from collections.abc import Iterator
from typing import Any, Final

from slipway.config.alarm_kinds import AlarmKind
from slipway.config.sections.alarms import Alarms
from slipway.deployed.described import Raw

PERIOD_SECONDS: Final = 60
"""Of Slipway's alarms."""


def alarm_fields(alarm: Raw, kind: AlarmKind, gpu_count: int) -> dict[str, Any]:
    """Returns the threshold of an alarm in the unit of its field, and its minutes.

    Metrics of GPUs add up over the GPUs of an instance.
    """
    value: float = alarm["Threshold"] / kind.metric_units_per_field_unit
    if kind.watch.gpu_part:
        value /= max(1, gpu_count)
    is_whole = Alarms.model_fields[kind.field].annotation in (int, int | None)
    return {
        kind.field: round(value) if is_whole or value == int(value) else value,
        **minutes_field(alarm),
    }


def minutes_field(alarm: Raw) -> dict[str, Any]:
    """Returns the minutes in a row that raise an alarm."""
    minutes = alarm["EvaluationPeriods"] * period_seconds(alarm) // PERIOD_SECONDS
    return {"evaluation_periods_minutes": max(1, minutes)}


def period_seconds(alarm: Raw) -> int:
    """Returns the time over which an alarm reads a value."""
    periods = [query["MetricStat"]["Period"] for query in metric_queries(alarm)]
    return int(alarm.get("Period") or max(periods, default=PERIOD_SECONDS))


def metric_queries(alarm: Raw) -> Iterator[Raw]:
    """Yields the queries of an alarm that read a metric and compute nothing."""
    yield from (query for query in alarm.get("Metrics") or () if "MetricStat" in query)
