"""The plan of an update: the steps, the alarms that are watched after each, and the time limit."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import ValidationError

# Bounds of a step in percent of the capacity. Source:
# https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails.html
_CANARY_PERCENT = (1, 50)
_LINEAR_PERCENT = (10, 50)
_ROLLING_PERCENT = (5, 50)
# botocore's documentation of InferenceComponentRollingUpdatePolicy.
_COMPONENT_PERCENT = (5, 50)
_LIMIT = "MaximumExecutionTimeoutInSeconds"


@dataclass(frozen=True, kw_only=True)
class Guards:
    """What undoes an update.

    Attributes:
        wait_seconds: time that the alarms are watched after each step.
        alarms: one in state ALARM undoes the update.
        limit_seconds: an update that takes longer is undone; None is no limit.
    """

    wait_seconds: float = 0.0
    alarms: tuple[str, ...] = ()
    limit_seconds: float | None = None


@dataclass(frozen=True, kw_only=True)
class Rollout(Guards):
    """A deployment configuration of an endpoint, in terms of traffic.

    Attributes:
        shares: the new fleet's share of the requests after each step, in (0, 1], rising to 1.
        termination_wait_seconds: how long the old fleet is kept after the update.
        beside: the part of the new fleet that runs beside the whole old fleet, in (0, 1].
    """

    shares: tuple[float, ...] = (1.0,)
    termination_wait_seconds: float = 0.0
    beside: float = 1.0


@dataclass(frozen=True, kw_only=True)
class ComponentRollout(Guards):
    """A deployment configuration of an inference component: at least one copy in a batch."""

    # AWS documents no default: one copy at a time needs the least room.
    batch: int = 1


def rollout_of(
    config: Mapping[str, Any] | None, *, instance_count: int, variant_count: int = 1
) -> Rollout:
    """Returns the rollout of a DeploymentConfig; None is SageMaker's default, all at once.

    `instance_count` is of the new fleet's smallest variant. With several variants, a rolling
    deployment becomes all at once without a wait:
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-exclusions.html
    """
    if not config:
        return Rollout()
    blue_green = config.get("BlueGreenUpdatePolicy")
    rolling = config.get("RollingUpdatePolicy")
    if (blue_green is None) == (rolling is None):
        raise ValidationError(
            "A DeploymentConfig needs either a BlueGreenUpdatePolicy or a RollingUpdatePolicy."
        )
    alarms = _alarms(config)
    if rolling is not None:
        step = _share(rolling["MaximumBatchSize"], instance_count, _ROLLING_PERCENT, "batch size")
        wait, limit = rolling["WaitIntervalInSeconds"], rolling.get(_LIMIT)
        if variant_count > 1:
            return Rollout(limit_seconds=limit)
        return Rollout(
            shares=_steps(step),
            wait_seconds=float(wait),
            alarms=alarms,
            limit_seconds=limit,
            beside=step,
        )
    routing = (blue_green or {})["TrafficRoutingConfiguration"]
    wait = float(routing["WaitIntervalInSeconds"])
    termination_wait = float((blue_green or {}).get("TerminationWaitInSeconds", 0))
    shares: tuple[float, ...] = (1.0,)
    if routing["Type"] == "CANARY":
        size = _required(routing, "CanarySize")
        shares = (_share(size, instance_count, _CANARY_PERCENT, "canary size"), 1.0)
    elif routing["Type"] == "LINEAR":
        size = _required(routing, "LinearStepSize")
        shares = _steps(_share(size, instance_count, _LINEAR_PERCENT, "linear step size"))
    limit = (blue_green or {}).get(_LIMIT)
    # One wait, however many steps there are: with two, an example of AWS's guide would be refused.
    if limit is not None and limit <= wait + termination_wait:
        raise ValidationError(
            f"MaximumExecutionTimeoutInSeconds {limit} must be greater than the sum of the waits, "
            f"{wait + termination_wait:g}."
        )
    return Rollout(
        shares=shares,
        wait_seconds=wait,
        termination_wait_seconds=termination_wait,
        alarms=alarms,
        limit_seconds=limit,
    )


def component_rollout_of(config: Mapping[str, Any] | None, copy_count: int) -> ComponentRollout:
    """Returns the rollout of a DeploymentConfig to some new copies; None is one at a time."""
    if config is None:
        return ComponentRollout()
    policy = config["RollingUpdatePolicy"]
    size = policy["MaximumBatchSize"]
    batch = int(size["Value"])
    is_percentage = size["Type"] == "CAPACITY_PERCENT"
    low, high = _COMPONENT_PERCENT
    percent = batch if is_percentage else 100 * batch / max(copy_count, 1)
    # One copy is the smallest batch, so that a component with one copy can be updated.
    if not low <= percent <= high and (is_percentage or batch > 1):
        raise ValidationError(
            f"The MaximumBatchSize must be between {low} and {high} percent of the copies; it is "
            f"{percent:g} percent."
        )
    if is_percentage:
        batch = max(math.floor(copy_count * batch / 100), 1)
    return ComponentRollout(
        batch=batch,
        wait_seconds=float(policy["WaitIntervalInSeconds"]),
        alarms=_alarms(config),
        limit_seconds=policy.get(_LIMIT),
    )


def _alarms(deployment: Mapping[str, Any]) -> tuple[str, ...]:
    alarms = deployment.get("AutoRollbackConfiguration", {}).get("Alarms", ())
    return tuple(alarm["AlarmName"] for alarm in alarms)


def _required(routing: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    if name not in routing:
        raise ValidationError(f"{name} is required for traffic routing {routing['Type']}.")
    size: Mapping[str, Any] = routing[name]
    return size


def _share(
    size: Mapping[str, Any], instance_count: int, bounds: tuple[int, int], noun: str
) -> float:
    if instance_count < 2:
        raise ValidationError(
            f"A {noun} needs at least 2 instances; the new fleet has {instance_count}."
        )
    value = size["Value"]
    percent = value if size["Type"] == "CAPACITY_PERCENT" else 100 * value / instance_count
    low, high = bounds
    if not low <= percent <= high:
        raise ValidationError(
            f"The {noun} must be between {low} and {high} percent of the capacity; "
            f"it is {percent:g} percent."
        )
    return float(percent) / 100


def _steps(step: float) -> tuple[float, ...]:
    shares: list[float] = []
    while not shares or shares[-1] < 1.0:
        # Rounded, so that ten steps of a tenth end at one.
        shares.append(min(1.0, round(step * (len(shares) + 1), 6)))
    return tuple(shares)
