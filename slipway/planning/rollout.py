"""A rollout in terms of traffic: its steps, its waits, and how long it takes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slipway.config.alarm_kinds import REQUESTS
from slipway.config.schema import ModelConfig
from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.rollout import Rollout
from slipway.planning.asynchronous import ASYNC
from slipway.planning.component import SCALE_TO_ZERO

ALL_AT_ONCE, CANARY, LINEAR, ROLLING = "all_at_once", "canary", "linear", "rolling"


@dataclass(frozen=True)
class RolloutPlan:
    """How an update moves the traffic, if the config asks for more than SageMaker's default.

    Args:
        strategy: `all_at_once`, `canary`, `linear` or `rolling`.
        step_percent: share of a step; None for `all_at_once`.
        wait_seconds: time of watching the alarms after each step. SageMaker's guide calls it the
            baking period.
        termination_wait_seconds: how long the old fleet stays after the last step.
        max_execution_seconds: an update that takes longer is undone; None for SageMaker's limit.
        rollback_alarms: alarms of each variant that undo it, by their names in the config.
        new_fleet_alarms: those among them that watch the new fleet alone.
    """

    strategy: str
    step_percent: int | None
    wait_seconds: int
    termination_wait_seconds: int
    max_execution_seconds: int | None
    rollback_alarms: tuple[str, ...]
    new_fleet_alarms: tuple[str, ...]

    @property
    def shares_percent(self) -> tuple[int, ...]:
        """Returns the new fleet's share of the requests after each step, up to 100."""
        return shares_percent(self.strategy, self.step_percent)

    @property
    def least_seconds(self) -> int:
        """Returns the sum of the waits, which every successful update takes at least."""
        return len(self.shares_percent) * self.wait_seconds + self.termination_wait_seconds

    def as_json(self) -> dict[str, Any]:
        """Returns the values that `asdict` leaves out."""
        return {"shares_percent": self.shares_percent, "least_seconds": self.least_seconds}


def rollout_plan(config: ModelConfig) -> RolloutPlan | None:
    """Returns the plan of a config's rollout; None for SageMaker's default."""
    rollout = config.rollout
    if not rollout.is_guarded:
        return None
    return RolloutPlan(
        rollout.strategy,
        rollout.step_percent,
        rollout.wait_seconds,
        rollout.termination_wait_seconds,
        rollout.max_execution_seconds,
        rollout.rollback_alarms,
        tuple(of_new_fleet(rollout.rollback_alarms, config.endpoint.mode)),
    )


def shares_percent(strategy: str, step_percent: int | None) -> tuple[int, ...]:
    """Returns the new fleet's share of the requests after each step, up to 100.

    SageMaker watches the alarms after each step, the last one included: "there is a final baking
    period". Source, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-blue-green-canary.html

    Args:
        strategy: of the rollout.
        step_percent: None for `all_at_once`.
    """
    if strategy == ALL_AT_ONCE or step_percent is None:
        return (100,)
    if strategy == CANARY:
        return (step_percent, 100)
    return (*range(step_percent, 100, step_percent), 100)


def waits_seconds(rollout: Rollout) -> int:
    """Returns the sum of a rollout's waits."""
    steps = shares_percent(rollout.strategy, rollout.step_percent)
    return len(steps) * rollout.wait_seconds + rollout.termination_wait_seconds


def of_new_fleet(names: Sequence[str], mode: str) -> list[str]:
    """Returns the names of the alarms whose metrics SageMaker also publishes for each fleet.

    The metrics of requests have the dimension EndpointConfigName, and the metrics of machines do
    not. AWS lists no such dimension for the metrics of asynchronous endpoints, and the metrics of
    an inference component name the component alone. Sources, read 2026-11-24:
    https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-configuration.html
    https://docs.aws.amazon.com/sagemaker/latest/dg/async-inference-monitor.html

    Args:
        names: alarms, by their names in `rollback_alarms`.
        mode: of the endpoint.
    """
    if mode in (ASYNC, SCALE_TO_ZERO):
        return []
    return [name for name in names if ALARM_KINDS[name].watch.group is REQUESTS]
