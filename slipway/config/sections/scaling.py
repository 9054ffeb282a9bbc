"""`autoscaling`: how the number of instances follows the load."""

from typing import Annotated

from pydantic import Field

from slipway.config.sections.base import (
    Count,
    CountFromZero,
    PauseSeconds,
    Percent,
    Section,
    Target,
)


class Times(Section):
    """When other bounds begin. A section with the bounds themselves derives from it."""

    name: str = Field(
        pattern=r"^[a-z][a-z0-9-]*$",
        max_length=64,
        description="Name of the schedule.",
        examples=["workday"],
    )
    at: str = Field(
        pattern=r"^(cron\(.+\)|rate\(.+\)|at\(.+\))$",
        description="Time of the change: Application Auto Scaling's `cron(...)`, `rate(...)` or "
        "`at(...)`.",
        examples=["cron(0 7 ? * MON-FRI *)"],
    )
    time_zone: str = Field(
        "UTC",
        pattern=r"^[\w+-]+(/[\w+-]+)*$",
        description="IANA time zone of `cron(...)` and `at(...)`. The schedule follows its "
        "daylight saving time.",
        examples=["Europe/Zurich"],
    )

    @property
    def zone_of_expression(self) -> str | None:
        """Returns the time zone of the expression; None for a rate, which has none."""
        return None if self.at.startswith("rate(") else self.time_zone


class Schedule(Times):
    """Other bounds at certain times."""

    min_instance_count: CountFromZero = Field(
        description="Instances at rest from then on.", examples=[4]
    )
    max_instance_count: Count = Field(description="Instances at most from then on.", examples=[12])

    @property
    def bounds(self) -> tuple[int, int]:
        return self.min_instance_count, self.max_instance_count


class Step(Section):
    """One of the larger steps of a fleet that is far above its target."""

    from_times_target: float = Field(
        gt=1,
        le=1000,
        allow_inf_nan=False,
        description="Load of an instance from which the step applies, as a multiple of the target.",
        examples=[2],
    )
    add_instances: Count = Field(description="Instances to add.", examples=[4])


class Autoscaling(Section):
    """Target tracking: the fleet grows and shrinks to hold the load of one instance."""

    min_instance_count: CountFromZero = Field(
        description="Fewest instances. 0 is possible only with `mode: async`.",
        examples=[1],
    )
    max_instance_count: Count = Field(
        description="Most instances, and therefore the upper bound of the cost.",
        examples=[4],
    )
    target_invocations_per_instance_per_minute: Target | None = Field(
        None,
        description="Load to hold each instance at. AWS's formula: highest rate per second of"
        " one instance x 0.5 for safety x 60.",
        examples=[600],
    )
    target_concurrent_requests_per_instance: Target | None = Field(
        None,
        description="Requests in flight to hold each instance at. It reacts within seconds, "
        "and suits models whose requests differ much in length.",
        examples=[8],
    )
    target_backlog_per_instance: Target | None = Field(
        None,
        description="Requests in the queue to hold each instance at, those being computed among "
        "them. Only with `mode: async`.",
        examples=[5],
    )
    target_gpu_utilization_percent: Percent | None = Field(
        None,
        description="Use of the GPUs to hold each instance at, as a mean over its GPUs. All types "
        "of a pool need the same number of GPUs.",
        examples=[60],
    )
    steps: Annotated[tuple[Step, ...], Field(strict=False)] = Field(
        (),
        max_length=10,
        description="Larger steps while the load is far above the target. They follow the target's "
        "metric, and apply after a minute of such load. Target tracking goes on beside them.",
    )
    schedules: Annotated[tuple[Schedule, ...], Field(strict=False)] = Field(
        (), max_length=20, description="Other bounds at certain times."
    )
    scale_in_cooldown_seconds: PauseSeconds = Field(
        300, description="Pause after removing instances.", examples=[300]
    )
    scale_out_cooldown_seconds: PauseSeconds = Field(
        60, description="Pause after adding instances.", examples=[60]
    )

    @property
    def smallest_count(self) -> int:
        return min([self.min_instance_count, *(each.min_instance_count for each in self.schedules)])

    @property
    def largest_count(self) -> int:
        return max([self.max_instance_count, *(each.max_instance_count for each in self.schedules)])

    @property
    def alarming_count(self) -> int:
        """Returns the size of a fleet at its maximum, which schedules set if there are any."""
        return max((s.max_instance_count for s in self.schedules), default=self.max_instance_count)

    @property
    def wakes(self) -> bool:
        """Whether the fleet may have no instances, so that a waiting request must start one."""
        return self.smallest_count == 0

    @property
    def step_policy_count(self) -> int:
        """Returns how many step policies a variant has, each with an alarm."""
        return bool(self.steps) + self.wakes

    @property
    def target_value(self) -> float:
        """Returns the one target that is set, which the rules see to, in its field's unit."""
        targets = (
            self.target_invocations_per_instance_per_minute,
            self.target_concurrent_requests_per_instance,
            self.target_backlog_per_instance,
            self.target_gpu_utilization_percent,
        )
        return next(target for target in targets if target is not None)
