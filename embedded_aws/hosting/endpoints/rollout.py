"""The plan by which an update moves traffic: the steps, their waits, the alarms that undo it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.fleets.rollback_alarms import alarm_names

# Bounds of a step in percent of the capacity. Source:
# https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails.html
_CANARY_PERCENT = (1, 50)
_LINEAR_PERCENT = (10, 50)
_ROLLING_PERCENT = (5, 50)
_LIMIT = "MaximumExecutionTimeoutInSeconds"


@dataclass(frozen=True)
class Rollout:
    """A deployment configuration in terms of traffic.

    Attributes:
        shares: the new fleet's share of the requests after each step, in (0, 1], rising to 1.
        wait_seconds: time that the alarms are watched after each step.
        termination_wait_seconds: how long the old fleet is kept after the update.
        alarms: one in state ALARM undoes the update.
        limit_seconds: an update that takes longer is undone; None is no limit.
        beside: the part of the new fleet that runs beside the whole old fleet, in (0, 1].
    """

    shares: tuple[float, ...] = (1.0,)
    wait_seconds: float = 0.0
    termination_wait_seconds: float = 0.0
    alarms: tuple[str, ...] = ()
    limit_seconds: float | None = None
    beside: float = 1.0


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
    alarms = alarm_names(config)
    if rolling is not None:
        step = _share(rolling["MaximumBatchSize"], instance_count, _ROLLING_PERCENT, "batch size")
        wait, limit = rolling["WaitIntervalInSeconds"], rolling.get(_LIMIT)
        if variant_count > 1:
            return Rollout(limit_seconds=limit)
        return Rollout(_steps(step), float(wait), 0.0, alarms, limit, beside=step)
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
    return Rollout(shares, wait, termination_wait, alarms, limit)


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
