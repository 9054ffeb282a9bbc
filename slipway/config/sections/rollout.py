"""`rollout`: how a change is brought out under the watch of the alarms."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from slipway.config.sections.alarms import ALARM_KINDS
from slipway.config.sections.base import PauseSeconds, Section

if TYPE_CHECKING:
    AlarmName = str
else:
    # Derived, so that a new alarm is a row of its own table alone.
    AlarmName = Literal[tuple(ALARM_KINDS)]


class Rollout(Section):
    """How an update moves the traffic to the new fleet.

    SageMaker's default moves it at once, watches no alarm and stops the old fleet. Each field asks
    for more than that: the alarms are watched, also with `strategy: all_at_once` alone.
    """

    strategy: Literal["all_at_once", "canary", "linear", "rolling"] = Field(
        "all_at_once",
        description="How the traffic moves: all at once, a first share, equal shares, or equal "
        "shares with few instances beside the old fleet.",
        examples=["canary"],
    )
    step_percent: int | None = Field(
        None,
        ge=5,
        le=50,
        description="Share of a canary, a linear step (10 at least) or a rolling batch.",
        examples=[25],
    )
    step_count: int | None = Field(
        None,
        ge=1,
        description="Instances, or copies with `mode: scale_to_zero`, of a step, in place of "
        "`step_percent`. SageMaker's limits of a share hold for it too.",
        examples=[1],
    )
    rollback_step_percent: int | None = Field(
        None,
        ge=5,
        le=100,
        description="Share of a batch on the way back, only with `rolling`. Without it the whole "
        "old fleet starts again at once.",
        examples=[25],
    )
    rollback_step_count: int | None = Field(
        None,
        ge=1,
        description="Instances or copies of a batch on the way back, in place of "
        "`rollback_step_percent`.",
        examples=[1],
    )
    wait_seconds: PauseSeconds = Field(
        300,
        description="Time that the alarms are watched after each step. `all_at_once` is one step. "
        "At least the alarms' `evaluation_periods_minutes`.",
        examples=[600],
    )
    termination_wait_seconds: PauseSeconds = Field(
        0,
        description="Time that the old fleet stays, so that going back is quick. Not with "
        "`rolling`.",
        examples=[300],
    )
    max_execution_seconds: int | None = Field(
        None,
        ge=600,
        le=28_800,
        description="SageMaker undoes an update that takes longer.",
        examples=[3600],
    )
    rollback_alarms: Annotated[tuple[AlarmName, ...], Field(strict=False)] = Field(
        ("server_error_rate",),
        max_length=10,
        description="Alarms that undo the update. The role that deploys and the execution role "
        "need `cloudwatch:DescribeAlarms`; without that right SageMaker watches no alarm.",
        examples=[["server_error_rate"]],
    )

    @property
    def is_guarded(self) -> bool:
        """Whether a file has the section: each field asks for more than SageMaker's default."""
        return bool(self.model_fields_set)

    def shares_percent(self, count: int) -> tuple[int, ...]:
        """Returns the new fleet's share of the requests after each step, up to 100.

        Args:
            count: instances or copies of the fleet, of which `step_count` is a part.

        SageMaker watches the alarms after each step, the last one included: "there is a final
        baking period". Source, read 2026-11-24:
        https://docs.aws.amazon.com/sagemaker/latest/dg/deployment-guardrails-blue-green-canary.html
        """
        whole, step = (count, self.step_count) if self.step_count else (100, self.step_percent)
        if self.strategy == "all_at_once" or step is None:
            return (100,)
        shares = [round(100 * part / whole) for part in range(step, whole, step)]
        return (*(shares[:1] if self.strategy == "canary" else shares), 100)

    def step_of(self, count: int) -> int:
        """Returns the instances of a step, at least one."""
        percent = 100 if self.step_percent is None else self.step_percent
        return self.step_count or math.ceil(count * percent / 100)

    def least_seconds(self, count: int) -> int:
        """Returns the sum of the waits, which every successful update takes at least."""
        return len(self.shares_percent(count)) * self.wait_seconds + self.termination_wait_seconds
