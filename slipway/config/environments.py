"""Environments: the accounts and regions a model can be deployed to, and the names in them.

Every name in an account comes from here, because two projects may share one. A project's name
stands in each of its names. No name of another project, or without a project, can then be the same.
Neither a project nor an environment has a hyphen, and a model's name has no two hyphens in a row.
"""

from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from slipway.config.names import LOCAL
from slipway.config.sections.base import Section
from slipway.config.sections.defaults import Defaults
from slipway.config.sections.image_builds import PUBLIC_BUILDS, ImageBuilds
from slipway.config.sections.keys import ARTIFACT_KEY, KeyArn, KeyChoice, is_of_region
from slipway.config.sections.network import Network
from slipway.config.sections.policies import NO_POLICIES, Policies
from slipway.config.sections.remote_publishing import RemotePublishing

# No hyphen: model `a` in `b-c` and model `a-b` in `c` would be one stack.
_NAME_PATTERN = r"^[a-z][a-z0-9]*$"
_ACCOUNT = r"^[0-9]{12}$"
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
LONGEST_BUCKET_NAME = 63


class Shared(Section):
    """The keys of environments.yaml that are for every environment."""

    project: Annotated[str, Field(pattern=_NAME_PATTERN, max_length=20)] = ""
    policies: Policies = NO_POLICIES
    defaults: Defaults = Defaults.model_validate({})


class EnvironmentName(Section):
    """The name part, which is the key in the file."""

    # `NAME-ENV` has 63 characters at most and model names 40.
    name: Annotated[str, Field(pattern=_NAME_PATTERN, max_length=20)] = Field(
        description="Key of the environment in the file. It is part of every stack's and "
        "endpoint's name."
    )


class Environment(EnvironmentName):
    """One named target in environments.yaml."""

    project: Annotated[str, Field(pattern=r"^([a-z][a-z0-9]*)?$", max_length=20)] = Field(
        "",
        description="Key `project` beside the environments, for all of them. It is part of "
        "every name in the account. Without it, nothing detects that another "
        "repository owns a stack.",
        examples=["search"],
    )
    account: str = Field(
        pattern=_ACCOUNT,
        description="AWS account, 12 digits in quotes. The CDK CLI refuses any other account.",
        examples=["123456789012"],
    )
    region: str = Field(
        pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$",
        description="AWS region of the environment.",
        examples=["eu-west-1"],
    )
    artifacts: Literal["sample", "release"] = Field(
        "release",
        description="Whether a model's `sample` or its `release` (or `weights`) is deployed here.",
    )
    artifact_key_arn: KeyArn | None = Field(
        None,
        description="Existing KMS key for the artifact bucket. Without it the foundation "
        "makes a key. CloudWatch needs permission to use it, because alarms write"
        " to an encrypted topic.",
        examples=["arn:aws:kms:eu-west-1:123456789012:key/1234abcd-12ab-34cd-56ef-1234567890ab"],
    )
    artifact_readers: tuple[Annotated[str, Field(pattern=_ACCOUNT)], ...] = Field(
        (),
        strict=False,
        description="Other AWS accounts that may read the published artifacts, for "
        "`slipway publish --from` this environment. The owner of an existing "
        "artifact key has to allow them `kms:Decrypt`. Models with "
        "`artifacts.isolated` stay unreadable.",
        examples=[["111122223333"]],
    )
    log_key: KeyChoice | None = Field(
        None,
        description="KMS key of the log groups that Slipway makes: `artifact` for the key of "
        "the artifact bucket, or the ARN of another key. CloudWatch Logs needs "
        "permission to use the key; the key that the foundation makes grants it. "
        "Without a key, CloudWatch Logs encrypts with a key of its own. An "
        "existing log group takes another key in place.",
        examples=["artifact"],
    )
    notification_emails: tuple[Annotated[str, Field(pattern=r"^[^@\s]+@[^@\s]+$")], ...] = Field(
        (),
        strict=False,
        description="Addresses that get a message when an alarm is raised and when it is over.",
        examples=[["ml@example.com"]],
    )
    permissions_boundary_arn: str | None = Field(
        None,
        pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9_+=,.@/-]+$",
        max_length=512,
        description="Managed policy that limits every role that Slipway makes here. It must "
        "allow what the roles need.",
        examples=["arn:aws:iam::123456789012:policy/developer-boundary"],
    )
    captured_data_days: int | None = Field(
        None,
        ge=1,
        le=3650,
        description="Days after which the artifact bucket deletes requests and answers that "
        "endpoints captured. Needed where `data_capture` has no `destination`.",
        examples=[30],
    )
    network: Network | None = Field(
        None,
        description="Network of every endpoint whose config has no `vpc`. Without it endpoints "
        "run in SageMaker's own network.",
    )
    image_builds: ImageBuilds = Field(
        PUBLIC_BUILDS, description="How container images are built in the account."
    )
    remote_publishing: RemotePublishing | None = Field(
        None,
        description="Has the foundation make a build project for `slipway publish NAME --remote`."
        " Without it there is none.",
    )
    policies: Policies = Field(
        NO_POLICIES,
        description="Conditions that every plan must meet. Those beside the environments are for "
        "all of them, and an environment's own are laid over these.",
    )
    defaults: Defaults = Field(
        Defaults.model_validate({}),
        description="Values that every model takes where its file says nothing. Those beside the "
        "environments are for all of them, and an environment's own are laid over these.",
    )

    @field_validator("artifact_key_arn", "log_key")
    @classmethod
    def _in_the_same_region(cls, value: str | None, info: ValidationInfo) -> str | None:
        # S3 and CloudWatch Logs encrypt with keys of their own region alone.
        region = info.data.get("region")
        if value is not None and region is not None and not is_of_region(value, region):
            raise PydanticCustomError(
                "key_of_another_region", "the key is in another region than the environment"
            )
        return value

    @field_validator("artifact_readers")
    @classmethod
    def _other_accounts(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if info.data.get("account") in value:
            raise PydanticCustomError(
                "own_account", "the environment's own account reads its artifacts without this"
            )
        return value

    @property
    def artifact_bucket(self) -> str:
        return f"{self.key_alias}-{self.account}-{self.region}"

    @property
    def access_log_bucket(self) -> str:
        return f"{self.artifact_bucket}-logs"

    @property
    def bucket_name_excess(self) -> int:
        """Returns how many characters the longest bucket name has too many; 0 if it fits."""
        return max(0, len(self.access_log_bucket) - LONGEST_BUCKET_NAME)

    @property
    def key_alias(self) -> str:
        project = f"{self.project}-" if self.project else ""
        return f"slipway-{project}{self.name}"

    @property
    def publish_project(self) -> str:
        return f"{self.key_alias}-publish"

    @property
    def known_log_key_arn(self) -> str | None:
        """Returns the ARN of the log groups' key if the file has it.

        It is None for a key that the foundation makes, and if log groups have no key.
        """
        return self.artifact_key_arn if self.log_key == ARTIFACT_KEY else self.log_key

    @property
    def parameter_prefix(self) -> str:
        """Returns the beginning of the names of the foundation's parameters in SSM."""
        project = f"{self.project}/" if self.project else ""
        return f"/slipway/{project}{self.name}/"

    @property
    def repository_prefix(self) -> str:
        return f"slipway/{self.project}/" if self.project else "slipway/"

    @property
    def tags(self) -> dict[str, str]:
        project = {"slipway:project": self.project} if self.project else {}
        return {"slipway:environment": self.name, **project}

    def stack_name(self, name: str) -> str:
        """Returns the name of a stack, and of a model's endpoint in it."""
        scoped = f"{self.project}--{name}" if self.project else name
        return f"{scoped}-{self.name}"

    @property
    def is_local(self) -> bool:
        return self.name == LOCAL
