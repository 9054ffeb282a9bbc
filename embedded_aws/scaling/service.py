"""Carries out scheduled actions and scaling policies of variants and inference components.

A scheduled action sets the bounds of a scalable target. A policy changes the capacity between them
while its alarm is raised. The capacity of a variant is its number of instances, and that of an
inference component its number of copies. Both are read and changed through SageMaker's API.
"""

import logging
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

from botocore.exceptions import ClientError
from moto.applicationautoscaling.models import applicationautoscaling_backends

from slipway.embedded_aws.clients import LoopbackClients
from slipway.embedded_aws.identity import ACCOUNT_ID
from slipway.embedded_aws.scaling.policies import stepped, tracked
from slipway.facts.schedule_expressions import ScheduleError, parse_schedule

logger = logging.getLogger(__name__)

_NAMESPACE = "sagemaker"
# How soon the thread notices that the clock was moved, or that the machine slept.
_POLL_SECONDS = 0.2
_SETTLE_POLL_SECONDS = 0.05
_STOP_SECONDS = 5.0
# https://docs.aws.amazon.com/autoscaling/application/APIReference/API_StepScalingPolicyConfiguration.html
_DEFAULT_COOLDOWN_SECONDS = 300


class BusyError(Exception):
    """The target is being changed, so that its capacity cannot be changed now."""


class Scaling:
    """The scheduled actions of every region, in the order of their times, and the policies."""

    def __init__(self, clients: LoopbackClients, clock: Callable[[], float] = time.time) -> None:
        self._clients = clients
        self._clock = clock
        # The time up to which scheduled actions were carried out.
        self._done_seconds = clock()
        # Region, dimension and resource id of targets that were busy.
        self._unfit: set[tuple[str, str, str]] = set()
        # Held while scheduled actions are carried out, by this object's thread or by a caller.
        self._due = threading.Lock()
        # Region and resource id of targets whose capacity was changed since the last `settle`.
        self._unsettled: set[tuple[str, str]] = set()
        # ARN of a policy, and whether it added capacity -> the time of its last change.
        self._changed: dict[tuple[str, bool], float] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="scheduled-scaling", daemon=True)

    def start(self) -> None:
        self._done_seconds = self._clock()
        self._thread.start()

    def close(self) -> None:
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)

    def run_due(self) -> None:
        """Carries out every action that became due since the last call, the earliest first."""
        with self._due:
            now_seconds = self._clock()
            while (due := self._next_due(now_seconds)) is not None:
                self._done_seconds, region, actions = due
                for action in actions:
                    self._carry_out(region, action)
            self._done_seconds = max(self._done_seconds, now_seconds)
            for region, dimension, resource_id in list(self._unfit):
                self._fit(region, dimension, resource_id)

    def settle(self, limit_seconds: float) -> None:
        """Waits for the capacity of scaled targets; the limit is of the machine's time."""
        deadline = time.monotonic() + limit_seconds
        while self._unsettled and time.monotonic() < deadline:
            for region, resource_id in list(self._unsettled):
                try:
                    _capacity(self._clients.client("sagemaker", region), resource_id)
                except BusyError:
                    continue
                self._unsettled.discard((region, resource_id))
            if self._unsettled and self._stopping.wait(_SETTLE_POLL_SECONDS):
                break
        self._unsettled.clear()

    def carry_out(self, region: str, policy_arn: str, value: float, threshold: float) -> None:
        """Carries out a policy whose alarm is raised, unless it changed the capacity just before.

        A policy that was deleted does nothing.
        """
        backend = applicationautoscaling_backends[ACCOUNT_ID][region]
        policies = list(backend.policies.values())
        policy = next((each for each in policies if each.policy_arn == policy_arn), None)
        target = (
            backend.targets.get(policy.scalable_dimension, {}).get(policy.resource_id)
            if policy
            else None
        )
        if policy is None or target is None:
            logger.warning("%s was not carried out: there is no such policy", policy_arn)
            return
        sagemaker = self._clients.client("sagemaker", region)
        try:
            current = _capacity(sagemaker, policy.resource_id)
        except BusyError:
            return  # the alarm is evaluated again in a minute
        if current is None:
            return
        wanted = min(
            max(_wanted(policy, current, value, threshold), target.min_capacity),
            target.max_capacity,
        )
        is_out = wanted > current
        suspended = target.suspended_state or {}
        if wanted == current or suspended.get(
            f"DynamicScaling{'Out' if is_out else 'In'}Suspended"
        ):
            return
        now_seconds = self._clock()
        last_seconds = self._changed.get((policy_arn, is_out))
        if last_seconds is not None and now_seconds - last_seconds < _pause_seconds(policy, is_out):
            return
        self._changed[policy_arn, is_out] = now_seconds
        logger.info(
            "%s: the policy %s changed the capacity from %s to %s",
            policy.resource_id,
            policy.policy_name,
            current,
            wanted,
        )
        try:
            self._set_capacity(region, policy.resource_id, wanted)
        except ClientError as error:
            logger.warning("%s was not scaled: %s", policy.resource_id, error)

    def _run(self) -> None:
        while not self._stopping.wait(_POLL_SECONDS):
            try:
                self.run_due()
            except Exception:
                # A bug of Slipway; the next action may succeed.
                logger.error("scheduled actions were not run:\n%s", traceback.format_exc())

    def _next_due(self, now_seconds: float) -> tuple[float, str, list[Any]] | None:
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
        target = backend.targets.get(action.scalable_dimension, {}).get(action.resource_id)
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
        self._fit(region, action.scalable_dimension, action.resource_id)

    def _fit(self, region: str, dimension: str, resource_id: str) -> None:
        """Brings a target's capacity within its bounds; tries again later if it is busy."""
        backend = applicationautoscaling_backends[ACCOUNT_ID][region]
        target = backend.targets.get(dimension, {}).get(resource_id)
        self._unfit.discard((region, dimension, resource_id))
        if target is None:
            return
        sagemaker = self._clients.client("sagemaker", region)
        try:
            current = _capacity(sagemaker, resource_id)
            if current is None:
                return
            wanted = min(max(current, target.min_capacity), target.max_capacity)
            if wanted != current:
                self._set_capacity(region, resource_id, wanted)
        except BusyError:
            self._unfit.add((region, dimension, resource_id))
        except ClientError as error:
            logger.warning("%s was not scaled: %s", resource_id, error)

    def _set_capacity(self, region: str, resource_id: str, count: int) -> None:
        """SageMaker may refuse the change with a `ClientError`."""
        sagemaker = self._clients.client("sagemaker", region)
        if (component := _component(resource_id)) is not None:
            sagemaker.update_inference_component_runtime_config(
                InferenceComponentName=component, DesiredRuntimeConfig={"CopyCount": count}
            )
        else:
            _, endpoint, _, variant = resource_id.split("/")
            change = {"VariantName": variant, "DesiredInstanceCount": count}
            sagemaker.update_endpoint_weights_and_capacities(
                EndpointName=endpoint, DesiredWeightsAndCapacities=[change]
            )
        self._unsettled.add((region, resource_id))


def _wanted(policy: Any, current: int, value: float, threshold: float) -> int:
    if policy.policy_type == "StepScaling":
        steps = policy.step_scaling_policy_configuration
        return stepped(steps, current, value, threshold)
    return tracked(policy.target_tracking_scaling_policy_configuration, current, value)


def _pause_seconds(policy: Any, is_out: bool) -> float:
    if policy.policy_type == "StepScaling":
        pause = policy.step_scaling_policy_configuration.get("Cooldown")
    else:
        member = "ScaleOutCooldown" if is_out else "ScaleInCooldown"
        pause = policy.target_tracking_scaling_policy_configuration.get(member)
    return float(_DEFAULT_COOLDOWN_SECONDS if pause is None else pause)


def _scheduled_actions() -> Iterator[tuple[str, Any]]:
    for region, backend in list(applicationautoscaling_backends[ACCOUNT_ID].items()):
        for action in list(backend.scheduled_actions):
            if action.service_namespace == _NAMESPACE:
                yield region, action


def _capacity(sagemaker: Any, resource_id: str) -> int | None:
    """Returns the capacity of a target; None if there is no such variant or component.

    `resource_id` is `endpoint/NAME/variant/NAME` or `inference-component/NAME`. Raises `BusyError`
    if a change of the endpoint or the component is in progress.
    """
    if (component := _component(resource_id)) is not None:
        return _copies(sagemaker, component)
    _, endpoint, _, variant = resource_id.split("/")
    try:
        described = sagemaker.describe_endpoint(EndpointName=endpoint)
    except ClientError:
        return None  # deleted meanwhile
    if described["EndpointStatus"] != "InService":
        raise BusyError
    counts = {
        item["VariantName"]: int(item["DesiredInstanceCount"])
        for item in described["ProductionVariants"]
    }
    return counts.get(variant)


def _component(resource_id: str) -> str | None:
    kind, _, name = resource_id.partition("/")
    return name if kind == "inference-component" else None


def _copies(sagemaker: Any, component: str) -> int | None:
    try:
        described = sagemaker.describe_inference_component(InferenceComponentName=component)
    except ClientError:
        return None  # deleted meanwhile
    status = described["InferenceComponentStatus"]
    if status in ("Creating", "Updating"):
        raise BusyError
    return int(described["RuntimeConfig"]["DesiredCopyCount"]) if status == "InService" else None
