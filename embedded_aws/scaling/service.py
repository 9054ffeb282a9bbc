"""Carries out scheduled actions: new bounds for a scalable target, and a capacity within them."""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError
from moto.applicationautoscaling.models import applicationautoscaling_backends

from embedded_aws.clients import LoopbackClients
from embedded_aws.identity import ACCOUNT_ID
from embedded_aws.scaling.capacity import BusyError, set_within
from embedded_aws.scaling.expressions import ScheduleError, parse_schedule

logger = logging.getLogger(__name__)

_NAMESPACE = "sagemaker"
_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
# How soon the thread notices that the clock was moved, or that the machine slept.
_POLL_SECONDS = 0.2
_STOP_SECONDS = 5.0


class Scaling:
    """The scheduled actions of every region, in the order of their times.

    Args:
        clients: calls SageMaker.
        clock: returns seconds since the epoch; tests move it.
    """

    def __init__(self, clients: LoopbackClients, clock: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._clock = clock
        # The time up to which scheduled actions were carried out.
        self._done_seconds = clock()
        # Region and resource id of targets whose endpoint was busy.
        self._unfit: set[tuple[str, str]] = set()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduled-scaling", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._done_seconds = self._clock()
        self._thread.start()

    def close(self) -> None:
        """Stops the thread."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def run_due(self) -> None:
        """Carries out every action that became due since the last call, the earliest first."""
        now_seconds = self._clock()
        while (due := self._next_due(now_seconds)) is not None:
            self._done_seconds, region, actions = due
            for action in actions:
                self._carry_out(region, action)
        self._done_seconds = max(self._done_seconds, now_seconds)
        for region, resource_id in list(self._unfit):
            self._fit(region, resource_id)

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            try:
                self.run_due()
            except Exception:
                # A bug of Slipway; the next action may succeed.
                logger.error("scheduled actions were not run:\n%s", traceback.format_exc())

    def _next_due(self, now_seconds: float) -> tuple[float, str, list[Any]] | None:
        """Returns the earliest time that is due, a region, and its actions at that time."""
        found: dict[tuple[float, str], list[Any]] = {}
        for region, action in _scheduled_actions():
            try:
                schedule = parse_schedule(action.schedule, action.timezone or "UTC")
            except ScheduleError:
                continue  # moto itself made it: PutScheduledAction refuses it
            at_seconds = schedule.next_after(self._done_seconds, action.creation_time)
            if at_seconds is not None and at_seconds <= now_seconds:
                found.setdefault((at_seconds, region), []).append(action)
        if not found:
            return None
        at_seconds, region = min(found)
        return at_seconds, region, found[at_seconds, region]

    def _carry_out(self, region: str, action: Any) -> None:
        backend = applicationautoscaling_backends[ACCOUNT_ID][region]
        target = backend.targets.get(_DIMENSION, {}).get(action.resource_id)
        if target is None:
            return
        if (target.suspended_state or {}).get("ScheduledScalingSuspended"):
            return
        bounds = action.scalable_target_action or {}
        target.update(bounds.get("MinCapacity"), bounds.get("MaxCapacity"), None)
        logger.info(
            "%s: the scheduled action %s set the bounds to %s and %s",
            action.resource_id,
            action.scheduled_action_name,
            target.min_capacity,
            target.max_capacity,
        )
        self._fit(region, action.resource_id)

    def _fit(self, region: str, resource_id: str) -> None:
        """Brings a target's capacity within its bounds; tries again later if it is busy."""
        backend = applicationautoscaling_backends[ACCOUNT_ID][region]
        target = backend.targets.get(_DIMENSION, {}).get(resource_id)
        self._unfit.discard((region, resource_id))
        if target is None:
            return
        sagemaker = self._clients.client("sagemaker", region)
        try:
            set_within(sagemaker, resource_id, target.min_capacity, target.max_capacity)
        except BusyError:
            self._unfit.add((region, resource_id))
        except ClientError as error:
            logger.warning("%s was not scaled: %s", resource_id, error)


def _scheduled_actions() -> Iterator[tuple[str, Any]]:
    for region, backend in list(applicationautoscaling_backends[ACCOUNT_ID].items()):
        for action in list(backend.scheduled_actions):
            if action.service_namespace == _NAMESPACE:
                yield region, action
