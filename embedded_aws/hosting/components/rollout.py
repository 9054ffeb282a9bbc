"""The replacement of an inference component's copies in batches, as its update plans it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from slipway.embedded_aws.api import ValidationError
from slipway.embedded_aws.hosting.fleets.rollback_alarms import alarm_names

# botocore's documentation of InferenceComponentRollingUpdatePolicy.
_PERCENT = (5, 50)


@dataclass(frozen=True)
class ComponentRollout:
    """A deployment configuration in terms of copies.

    Attributes:
        batch: copies of a batch, at least one.
        wait_seconds: time that the alarms are watched after each batch.
        alarms: one in state ALARM undoes the update.
        limit_seconds: an update that takes longer is undone; None is no limit.
    """

    # AWS documents no default: one copy at a time needs the least room.
    batch: int = 1
    wait_seconds: float = 0.0
    alarms: tuple[str, ...] = ()
    limit_seconds: float | None = None


def component_rollout_of(config: Mapping[str, Any] | None, copy_count: int) -> ComponentRollout:
    """Returns the rollout of a DeploymentConfig to some new copies; None is one at a time."""
    if config is None:
        return ComponentRollout()
    policy = config["RollingUpdatePolicy"]
    size = policy["MaximumBatchSize"]
    batch = int(size["Value"])
    is_percentage = size["Type"] == "CAPACITY_PERCENT"
    low, high = _PERCENT
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
        batch,
        wait_seconds=float(policy["WaitIntervalInSeconds"]),
        alarms=alarm_names(config),
        limit_seconds=policy.get("MaximumExecutionTimeoutInSeconds"),
    )
