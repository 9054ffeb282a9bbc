"""Times at which the bounds of scaling change."""

from pydantic import Field

from slipway.config.sections.base import Section


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
