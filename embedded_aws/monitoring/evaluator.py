"""The thread that evaluates alarms on the clock.

An alarm with a period of a minute or more is evaluated once a minute. An alarm with a shorter
period is evaluated every ten seconds, and an alarm that looks back over more than a day once an
hour. Its periods end at the moment of evaluation. The periods of an alarm over five minutes
therefore move on by one minute each time:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from weakref import WeakKeyDictionary

from moto.cloudwatch.models import cloudwatch_backends

from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.monitoring.definitions import (
    DAY_SECONDS,
    AlarmDefinition,
    AlarmRefusedError,
    definition_of,
    described,
)
from slipway.embedded_aws.monitoring.evaluation import State, datapoints_of, evaluate, range_periods
from slipway.embedded_aws.monitoring.notifications import is_scaling_policy
from slipway.embedded_aws.monitoring.reasons import reason, reason_data
from slipway.embedded_aws.monitoring.samples import MetricKey, by_metric, samples_by_period
from slipway.embedded_aws.monitoring.states import AlarmStates

logger = logging.getLogger(__name__)

_TEN_SECONDS, _MINUTE_SECONDS, _HOUR_SECONDS = 10, 60, 3600
_CADENCES_SECONDS = (_TEN_SECONDS, _MINUTE_SECONDS, _HOUR_SECONDS)
# Delay after a period's end, for values of the period that are still to be recorded.
_GRACE_SECONDS = 0.5
# How soon the thread notices that the clock was moved, or that the machine slept.
_POLL_SECONDS = 1.0
_STOP_SECONDS = 5.0


class AlarmEvaluator:
    """Evaluates the alarms of every region.

    `refresh` publishes the values that this server has measured since. `scale` carries out a
    scaling policy after each evaluation in which its alarm is raised, as CloudWatch does. It gets
    the region, the policy's ARN, and the value and threshold.
    """

    def __init__(
        self,
        states: AlarmStates,
        *,
        clock: Callable[[], float] = time.time,
        refresh: Callable[[], None] = lambda: None,
        scale: Callable[[str, str, float, float], None] = lambda *_: None,
    ) -> None:
        self._states = states
        self._clock = clock
        self._refresh = refresh
        self._scale = scale
        self._definitions: WeakKeyDictionary[Any, AlarmDefinition | AlarmRefusedError]
        self._definitions = WeakKeyDictionary()
        # Cadence -> the time up to which its alarms are evaluated.
        self._evaluated: dict[int, float] = {}
        # Held during the evaluations that are due, by this object's thread or by a caller.
        self._due = threading.Lock()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alarm-evaluator", daemon=True)

    def start(self) -> None:
        """Starts the thread; the first evaluations are at the next full ten seconds."""
        self._evaluated = {c: self._boundary(c) for c in _CADENCES_SECONDS}
        self._thread.start()

    def close(self) -> None:
        """Stops the thread, without waiting for a topic's subscriber that does not answer."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def evaluate(self, cadence_seconds: int, end_seconds: float) -> None:
        """Evaluates every alarm of a cadence (10, 60 or 3600 s) up to the end of a period."""
        refreshed = False
        for region, backend in list(cloudwatch_backends[ACCOUNT_ID].items()):
            due = [
                (alarm, definition)
                for alarm, definition in self._alarms(region, backend)
                if _cadence_seconds(definition) == cadence_seconds
            ]
            if not due:
                continue
            if not refreshed:
                self._refresh()
                refreshed = True
            # A copy, because requests add data meanwhile.
            data = _select(list(backend.metric_data), [d for _, d in due], end_seconds)
            for alarm, definition in due:
                try:
                    self._evaluate_one(region, backend.alarms, alarm, definition, data, end_seconds)
                except Exception:
                    # A bug of Slipway; the other alarms are still evaluated.
                    logger.error("alarm %s failed:\n%s", alarm.name, traceback.format_exc())

    def evaluate_due(self) -> None:
        with self._due:
            for cadence_seconds in _CADENCES_SECONDS:
                boundary = self._boundary(cadence_seconds)
                # Only the latest evaluation, however many were missed while the machine slept. If
                # the clock was set back, an earlier one is done again.
                if boundary == self._evaluated[cadence_seconds]:
                    continue
                self._evaluated[cadence_seconds] = boundary
                try:
                    self.evaluate(cadence_seconds, boundary)
                except Exception:
                    # A bug of Slipway; the next evaluation may succeed.
                    logger.error("alarms were not evaluated:\n%s", traceback.format_exc())

    def put_again(self, region: str, before: Any, alarm: Any) -> None:
        """Evaluates an alarm at once if it was raised by other metrics than it has now.

        CloudWatch does so within a minute, and SageMaker takes minutes to start the fleet that a
        changed alarm guards. Here a fleet starts in seconds, and would be undone for the fault of
        another one.
        """
        if alarm.state_value != State.ALARM:
            return
        definition = definition_of(described(alarm))
        if definition.metrics == definition_of(described(before)).metrics:
            return
        self._refresh()
        backend = cloudwatch_backends[ACCOUNT_ID][region]
        end_seconds = self._boundary(_cadence_seconds(definition))
        data = _select(list(backend.metric_data), [definition], end_seconds)
        self._evaluate_one(region, backend.alarms, alarm, definition, data, end_seconds)

    def _run(self) -> None:
        while True:
            now = self._clock() - _GRACE_SECONDS
            if self._stopping.wait(min(_TEN_SECONDS - now % _TEN_SECONDS, _POLL_SECONDS)):
                return
            self.evaluate_due()

    def _boundary(self, cadence_seconds: int) -> float:
        now = self._clock() - _GRACE_SECONDS
        return now - now % cadence_seconds

    def _alarms(self, region: str, backend: Any) -> Iterable[tuple[Any, AlarmDefinition]]:
        for alarm in list(backend.alarms.values()):
            definition = self._definitions.get(alarm)
            if definition is None:
                try:
                    definition = definition_of(described(alarm))
                except AlarmRefusedError as error:
                    definition = error
                    self._report(region, backend.alarms, alarm, str(error))
                self._definitions[alarm] = definition
            if isinstance(definition, AlarmDefinition):
                yield alarm, definition

    def _report(self, region: str, alarms: dict[str, Any], alarm: Any, message: str) -> None:
        """PutMetricAlarm refuses such an alarm, but moto itself may have made this one."""
        logger.warning('Alarm "%s" in %s is not evaluated: %s', alarm.name, region, message)
        decided = (State.INSUFFICIENT_DATA, f"Not evaluated: {message}", None)
        self._states.change(alarms, alarm, lambda _: decided)

    def _evaluate_one(
        self,
        region: str,
        alarms: dict[str, Any],
        alarm: Any,
        definition: AlarmDefinition,
        data: Mapping[MetricKey, Sequence[Any]],
        end_seconds: float,
    ) -> None:
        count = range_periods(definition)
        end = datetime.fromtimestamp(end_seconds, UTC)
        period = timedelta(seconds=definition.period_seconds)
        samples = {
            identifier: samples_by_period(
                _of_unit(data[source.key], source.unit),
                end_seconds=end_seconds,
                period_seconds=definition.period_seconds,
                count=count,
            )
            for identifier, source in definition.metrics.items()
        }
        starts = [end - (count - index) * period for index in range(count)]
        verdict = evaluate(definition, datapoints_of(definition, samples, starts))
        if verdict is None:
            return

        def decide(current: str) -> tuple[State, str, str] | None:
            if verdict.state == current:
                return None
            queried_at = datetime.fromtimestamp(self._clock(), UTC)
            data = reason_data(definition, verdict, queried_at=queried_at)
            return verdict.state, reason(definition, verdict), data

        self._states.change(alarms, alarm, decide)
        values = [point.value for point in verdict.evaluated if point.value is not None]
        if verdict.state is State.ALARM and alarm.actions_enabled and values:
            for action in alarm.alarm_actions:
                if is_scaling_policy(action):
                    self._scale(region, action, values[0], definition.threshold)


def _cadence_seconds(definition: AlarmDefinition) -> int:
    if definition.period_seconds < _MINUTE_SECONDS:
        return _TEN_SECONDS
    if definition.period_seconds * definition.evaluation_periods > DAY_SECONDS:
        return _HOUR_SECONDS
    return _MINUTE_SECONDS


def _select(
    data: Iterable[Any], definitions: Sequence[AlarmDefinition], end_seconds: float
) -> dict[MetricKey, list[Any]]:
    metrics = [each.key for definition in definitions for each in definition.metrics.values()]
    length_seconds = max(range_periods(each) * each.period_seconds for each in definitions)
    return by_metric(data, metrics, end_seconds - length_seconds)


def _of_unit(data: Iterable[Any], unit: str | None) -> Iterable[Any]:
    # A datum that was put without a unit has the unit None.
    return [datum for datum in data if unit is None or (datum.unit or "None") == unit]
