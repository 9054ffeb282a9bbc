"""Environments: the accounts and regions a model can be deployed to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from slipway.config.names import LOCAL
from slipway.config.sections.base import Section

# No hyphen: model `a` in `b-c` and model `a-b` in `c` would be one stack.
_NAME_PATTERN = r"^[a-z][a-z0-9]*$"


class EnvironmentName(Section):
    """The name part, which is the key in the file."""

    # `NAME-ENV` has 63 characters at most and model names 40.
    name: Annotated[str, Field(pattern=_NAME_PATTERN, max_length=20)] = Field(
        description="Chosen with `-c env=NAME`; part of every stack's and endpoint's name."
    )


class Environment(EnvironmentName):
    """One named target in environments.yaml."""

    account: str = Field(
        pattern=r"^[0-9]{12}$",
        description="AWS account, 12 digits in quotes. The CDK CLI refuses any other account.",
        examples=["123456789012"],
    )
    region: str = Field(
        pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", description="AWS region.", examples=["eu-west-1"]
    )
    artifacts: Literal["sample", "release"] = Field(
        "release", description="Which of a model's two artifacts is deployed here."
    )
    notification_emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...] = Field(
        (), strict=False,
        description="Who is written to when an alarm is raised.", examples=[["ml@example.com"]],
    )  # fmt: skip

    @property
    def artifact_bucket(self) -> str:
        """Name of the bucket with the models' files; known offline, so that plans can hold it."""
        return f"slipway-{self.name}-{self.account}-{self.region}"

    @property
    def is_local(self) -> bool:
        """Whether this is the embedded AWS."""
        return self.name == LOCAL
