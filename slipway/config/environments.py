"""Environments: the accounts and regions a model can be deployed to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

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
    artifact_key_arn: str | None = Field(
        None, pattern=r"^arn:aws[a-z-]*:kms:[a-z0-9-]+:[0-9]{12}:key/[A-Za-z0-9-]+$",
        description="KMS key of the artifact bucket, where one exists that the foundation shall "
        "use. Without it the foundation makes a key. CloudWatch has to be allowed to use it.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )  # fmt: skip
    notification_emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...] = Field(
        (), strict=False,
        description="Who is written to when an alarm is raised.", examples=[["ml@example.com"]],
    )  # fmt: skip

    @field_validator("artifact_key_arn")
    @classmethod
    def _in_the_same_region(cls, value: str | None, info: ValidationInfo) -> str | None:
        # S3 encrypts with keys of the bucket's own Region alone.
        region = info.data.get("region")
        if value is not None and region is not None and value.split(":")[3] != region:
            raise PydanticCustomError(
                "key_of_another_region", "the key is in another region than the environment"
            )
        return value

    @property
    def artifact_bucket(self) -> str:
        """Name of the bucket with the models' files; known offline, so that plans can hold it."""
        return f"slipway-{self.name}-{self.account}-{self.region}"

    @property
    def is_local(self) -> bool:
        """Whether this is the embedded AWS."""
        return self.name == LOCAL
