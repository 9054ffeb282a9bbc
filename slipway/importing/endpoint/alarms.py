"""CloudWatch's alarms of an endpoint, as the section `alarms` has them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from slipway.config.alarm_kinds import AlarmKind, Watch
from slipway.config.alarms_of_modes import watch_of
from slipway.config.capacity_alarm import CAPACITY_WATCHES
from slipway.config.sections.alarms import Alarms
from slipway.deployed.described import Described, Raw
from slipway.deployed.scaling import (
    PERIOD_SECONDS,
    alarm_fields,
    metric_queries,
    minutes_field,
    period_seconds,
)
from slipway.importing.draft import DEFAULT_LATENCY_MILLISECONDS
from slipway.importing.endpoint.findings import Findings
from slipway.planning.described_alarms import is_capacity_alarm, kind_of, variant_of

_SERVER_ERRORS, _LATENCY = "server_error_rate_percent", "model_latency_p99_milliseconds"
_NO_KIND = "no alarm of Slipway compares this."


def alarm_names(described: Described) -> dict[str, str]:
    """Returns the alarms that a config can have: by name in CloudWatch, the name in `rollout`."""
    return {
        alarm["AlarmName"]: kind.name
        for alarm in described.alarms
        if (kind := _same_kind(alarm)) is not None
    }


def alarms_section(
    described: Described, gpu_count: int, found: Findings, latency_milliseconds: int | None
) -> dict[str, Any]:
    """Returns the section, with guesses for the thresholds that no alarm has."""
    section: dict[str, Any] = {}
    for alarm in _own(described):
        kind = _same_kind(alarm)
        if kind is not None:
            fields = alarm_fields(alarm, kind, gpu_count)
        elif is_capacity_alarm(alarm) and _has_formulas(alarm, CAPACITY_WATCHES.values()):
            fields = {"at_max_capacity": True, **minutes_field(alarm)}
        else:
            found.leave_out(f"alarm {alarm['AlarmName']}", _described(alarm), _NO_KIND)
            continue
        for field, value in fields.items():
            kept = section.setdefault(field, value)
            if kept != value:
                reason = f"{kept} now. All share it."
                found.change(f"alarm {alarm['AlarmName']}: {field}", value, reason)
        if differences := list(_differences(alarm)):
            found.change(f"alarm {alarm['AlarmName']}", ", ".join(differences), "as Slipway's now.")
    if described.environment is None:
        for topic in dict.fromkeys(_actions(described)):
            reason = "Slipway's alarms send messages to the environment's notification topic."
            found.leave_out("alarm action", topic, reason)
    if latency_milliseconds is not None:
        section[_LATENCY] = latency_milliseconds
    if _LATENCY not in section:
        section[_LATENCY] = DEFAULT_LATENCY_MILLISECONDS
        reason = "no alarm has an objective. This is half of SageMaker's limit; set your own."
        found.guess(("alarms", _LATENCY), reason)
    if _SERVER_ERRORS not in section:
        section[_SERVER_ERRORS] = Alarms.model_fields[_SERVER_ERRORS].default
        found.guess(("alarms", _SERVER_ERRORS), "no alarm watches it. This is Slipway's default.")
    order = list(Alarms.model_fields)
    return dict(sorted(section.items(), key=lambda item: order.index(item[0])))


def _own(described: Described) -> Iterator[Raw]:
    """Yields the alarms of whole fleets that scaling did not make."""
    scaling = {
        each["AlarmName"] for policy in described.policies for each in policy.get("Alarms") or ()
    }
    variants = {each["VariantName"] for each in described.config["ProductionVariants"]}
    for alarm in described.alarms:
        names = {each["Name"] for each in _dimensions(alarm)}
        if alarm["AlarmName"] in scaling:
            continue
        if "EndpointConfigName" in names and _same_kind(alarm) is not None:
            continue  # of the newest fleet alone; `rollback_alarms` makes it
        if variant_of(alarm) in variants or "VariantName" not in names:
            yield alarm


def _same_kind(alarm: Raw) -> AlarmKind | None:
    """Returns the row of the table of alarms that an alarm is; None for any other alarm."""
    kind = kind_of(alarm)
    if kind is None or not _has_formulas(alarm, _both(kind)):
        return None
    is_above = str(alarm.get("ComparisonOperator")).startswith("GreaterThan")
    return kind if is_above and "Threshold" in alarm else None


def _both(kind: AlarmKind) -> list[Watch]:
    found = (watch_of(kind, mode) for mode in ("realtime", "async"))
    return [each for each in found if each is not None]


def _has_formulas(alarm: Raw, watches: Iterable[Watch]) -> bool:
    expressions = {
        query["Expression"] for query in alarm.get("Metrics") or () if "Expression" in query
    }
    return any(
        expressions == {formula.expression for formula in watch.formulas} for watch in watches
    )


def _differences(alarm: Raw) -> Iterator[str]:
    if alarm["ComparisonOperator"] != "GreaterThanThreshold":
        yield str(alarm["ComparisonOperator"])
    if period_seconds(alarm) != PERIOD_SECONDS:
        yield f"periods of {period_seconds(alarm)} seconds"
    if alarm.get("DatapointsToAlarm", alarm["EvaluationPeriods"]) != alarm["EvaluationPeriods"]:
        yield f"{alarm['DatapointsToAlarm']} data points of {alarm['EvaluationPeriods']}"
    kind = kind_of(alarm)
    expected = kind.watch.group.missing_data if kind else alarm.get("TreatMissingData")
    if alarm.get("TreatMissingData", "missing") != expected:
        yield f"{alarm.get('TreatMissingData', 'missing')} without data"
    if not alarm.get("ActionsEnabled", True):
        yield "actions are off"


def _dimensions(alarm: Raw) -> Iterator[Mapping[str, str]]:
    yield from alarm.get("Dimensions") or ()
    for query in metric_queries(alarm):
        yield from query["MetricStat"]["Metric"].get("Dimensions") or ()


def _actions(described: Described) -> Iterator[str]:
    for alarm in _own(described):
        for name in ("AlarmActions", "OKActions", "InsufficientDataActions"):
            yield from alarm.get(name) or ()


def _described(alarm: Raw) -> str:
    """Returns what an alarm compares, for example `ModelLatency (Average) > 500000.0`."""
    statistic = alarm.get("Statistic") or alarm.get("ExtendedStatistic")
    read = (
        f"{alarm['MetricName']} ({statistic})"
        if "MetricName" in alarm
        else " and ".join(
            query.get("Expression") or query["MetricStat"]["Metric"]["MetricName"]
            for query in alarm.get("Metrics") or ()
        )
    )
    return f"{read} {alarm.get('ComparisonOperator')} {alarm.get('Threshold', 'a band')}"
