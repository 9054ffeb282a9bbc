"""Changes of the bounds of scaling at certain times."""

from dataclasses import dataclass

from slipway.config.sections.scale_to_zero import CopySchedule
from slipway.config.sections.scaling import Schedule


@dataclass(frozen=True)
class ScheduledTime:
    """When other bounds begin.

    Args:
        name: of the scheduled action.
        expression: `cron(...)`, `rate(...)` or `at(...)`.
        time_zone: of the expression; None for a rate, which has none.
    """

    name: str
    expression: str
    time_zone: str | None


@dataclass(frozen=True)
class SchedulePlan(ScheduledTime):
    """Other bounds of the instances.

    Args:
        min_instance_count: the fewest instances from then on.
        max_instance_count: the most instances from then on.
    """

    min_instance_count: int
    max_instance_count: int

    @classmethod
    def of(cls, schedule: Schedule) -> "SchedulePlan":
        """Returns the plan of a config's schedule."""
        return cls(
            schedule.name,
            schedule.at,
            schedule.zone_of_expression,
            schedule.min_instance_count,
            schedule.max_instance_count,
        )

    @property
    def bounds(self) -> tuple[int, int]:
        """Returns the lower and the upper bound."""
        return self.min_instance_count, self.max_instance_count


@dataclass(frozen=True)
class CopySchedulePlan(ScheduledTime):
    """Other bounds of the copies of an inference component.

    Args:
        min_copies: the fewest copies from then on.
        max_copies: the most copies from then on.
    """

    min_copies: int
    max_copies: int

    @classmethod
    def of(cls, schedule: CopySchedule) -> "CopySchedulePlan":
        """Returns the plan of a config's schedule."""
        return cls(
            schedule.name,
            schedule.at,
            schedule.zone_of_expression,
            schedule.min_copies,
            schedule.max_copies,
        )

    @property
    def bounds(self) -> tuple[int, int]:
        """Returns the lower and the upper bound."""
        return self.min_copies, self.max_copies
