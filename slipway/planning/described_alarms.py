"""What an alarm of CloudWatch watches, as DescribeAlarms answers it."""

from collections.abc import Mapping
from typing import Any

from slipway.config.alarm_kinds import AlarmKind, Watch
from slipway.config.alarms_of_modes import watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import ALARM_KINDS


def watches(alarm: Mapping[str, Any], endpoint_name: str) -> bool:
    """Returns whether a metric alarm reads a metric of an endpoint."""
    return endpoint_name in (
        *_values(alarm, "EndpointName"),
        # The component of an endpoint that scales to zero has the endpoint's name.
        *_values(alarm, "InferenceComponentName"),
    )


def kind_of(alarm: Mapping[str, Any]) -> AlarmKind | None:
    """Returns the row of the table of alarms that reads the metrics of an alarm, or None."""
    for kind in ALARM_KINDS.values():
        watches = (watch_of(kind, mode) for mode in ("realtime", "async", "serverless"))
        if any(watch is not None and _reads(alarm, watch) for watch in watches):
            return kind
    return None


def is_capacity_alarm(alarm: Mapping[str, Any]) -> bool:
    """Returns whether an alarm compares the size of the fleet with its maximum."""
    return any(_reads(alarm, watch) for watch in CAPACITY_WATCHES.values())


def _reads(alarm: Mapping[str, Any], watch: Watch) -> bool:
    read = {(stat["Metric"]["MetricName"], stat["Stat"]) for stat in _metric_stats(alarm)}
    return {(metric.name, metric.statistic) for metric in watch.metrics} == read


def scales(alarm: Mapping[str, Any]) -> bool:
    """Returns whether an alarm carries out a scaling policy: load raises it, not a fault."""
    return any(":scalingPolicy:" in action for action in alarm.get("AlarmActions", ()))


def variant_of(alarm: Mapping[str, Any]) -> str | None:
    """Returns the name of the variant that an alarm watches, or None."""
    return next(iter(_values(alarm, "VariantName")), None)


def _values(alarm: Mapping[str, Any], dimension: str) -> list[str]:
    return [
        item["Value"]
        for stat in _metric_stats(alarm)
        for item in stat["Metric"].get("Dimensions", ())
        if item["Name"] == dimension
    ]


def _metric_stats(alarm: Mapping[str, Any]) -> list[Any]:
    """Returns a MetricStat for each metric that an alarm reads, alone or in metric math."""
    if "MetricName" in alarm:
        statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
        return [{"Metric": alarm, "Stat": statistic}]
    return [query["MetricStat"] for query in alarm.get("Metrics", ()) if "MetricStat" in query]
