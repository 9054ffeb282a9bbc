"""What sections are made of: a strict, frozen model, and the types that several of them use."""

import re
import unicodedata
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from slipway.errors import did_you_mean
from slipway.facts.instances import instance_types

RESERVED_TAG_PREFIXES = ("slipway:", "aws:")
# Beside letters, digits and spaces: what SageMaker, IAM and CloudWatch Logs all take.
TAG_PUNCTUATION = "_.:/=+-@"
# CreateModel's documentation: each variable, and all names and values together. What Slipway adds
# of its own stays within the rest of the 32 KB.
LARGEST_VARIABLE_BYTES = 1024
LARGEST_ENVIRONMENT_BYTES = 31 * 1024

# CloudWatch Logs takes these numbers of days and no others.
_DAYS_OF_MONTHS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180)
_DAYS_OF_YEARS = (365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)
LOG_RETENTION_DAYS = (*_DAYS_OF_MONTHS, *_DAYS_OF_YEARS)


class UnknownValueError(Exception):
    """A value was asked for that the file has not, or has wrong: nothing follows from it."""


class Section(BaseModel):
    """A part of the file: unknown fields are errors, "600" is not 600, nothing changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    # mypy would take any name for a field otherwise.
    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuses a field without a value, which only the known part of a config has."""
            if name in type(self).model_fields:
                raise UnknownValueError(name)
            return super().__getattr__(name)


def _known_instance_type(value: str) -> str:
    known = instance_types()
    if value in known:
        return value
    raise PydanticCustomError(
        "unknown_instance_type",
        "unknown instance type",
        {"hint": did_you_mean(value, known), "known": len(known)},
    )


def _project_path(value: str) -> str:
    if value.startswith(("/", "~")) or ".." in re.split(r"[/\\]", value):
        raise PydanticCustomError("project_path", "the path leads out of the project")
    return value


def _s3_prefix(value: str) -> str:
    bucket, _, key = value.removeprefix("s3://").partition("/")
    if not value.startswith("s3://") or not bucket or (key and not key.endswith("/")):
        raise PydanticCustomError("s3_prefix", "not a prefix in S3")
    return value


def _no_control_characters(value: str) -> str:
    for letter in value:
        control = unicodedata.category(letter) == "Cc" and letter not in "\t\n\r"
        if control or letter in _NO_CHARACTERS:
            raise PydanticCustomError(
                "control_character",
                "a control character",
                {"code_point": f"U+{ord(letter):04X}"},
            )
    return value


def _tag_characters(value: str) -> str:
    for letter in value:
        if unicodedata.category(letter)[0] not in "LNZ" and letter not in TAG_PUNCTUATION:
            raise PydanticCustomError(
                "tag_characters", "a character that tags cannot have", {"character": letter}
            )
    return value


def _free_tag(value: str) -> str:
    if value.lower().startswith(RESERVED_TAG_PREFIXES):
        raise PydanticCustomError("reserved_tag", "the tag belongs to Slipway or to AWS")
    return value


def _distinct_tags(tags: dict[str, str]) -> dict[str, str]:
    seen: dict[str, str] = {}
    for key in tags:
        other = seen.setdefault(key.lower(), key)
        if other != key:
            raise PydanticCustomError(
                "same_tag", "two tags differ in case alone", {"one": other, "other": key}
            )
    return tags


def _fits_container(variables: dict[str, str]) -> dict[str, str]:
    total = 0
    for name, value in variables.items():
        size = len(value.encode())
        if size > LARGEST_VARIABLE_BYTES:
            raise PydanticCustomError(
                "variable_too_large", "too many bytes", {"name": name, "size": size}
            )
        total += len(name) + size
    if total > LARGEST_ENVIRONMENT_BYTES:
        raise PydanticCustomError("environment_too_large", "too many bytes", {"size": total})
    return variables


def _log_retention(value: Any) -> Any:
    if isinstance(value, int) and value not in LOG_RETENTION_DAYS:
        near = min(LOG_RETENTION_DAYS, key=lambda days: abs(days - value))
        raise PydanticCustomError(
            "log_retention", "not one of CloudWatch's retention periods", {"near": near}
        )
    return value


# Unicode calls them noncharacters; YAML has neither.
_NO_CHARACTERS = "\ufffe\uffff"
# A template has it as it is, and its readers refuse control characters.
PlainText = Annotated[str, AfterValidator(_no_control_characters)]
# The editor's schema lists the types once, for every field that takes one.
INSTANCE_TYPE_REFERENCE = "#/$defs/InstanceType"
InstanceType = Annotated[
    str,
    AfterValidator(_known_instance_type),
    WithJsonSchema({"type": "string", "format": INSTANCE_TYPE_REFERENCE}),
]
# Of instances, copies or requests.
Count = Annotated[int, Field(ge=1, le=1000)]
CountFromZero = Annotated[int, Field(ge=0, le=1000)]
QueueLength = Annotated[int, Field(ge=1, le=100_000)]
Tokens = Annotated[int, Field(ge=1, le=32768)]
PauseSeconds = Annotated[int, Field(ge=0, le=3600)]
Percent = Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)]
# Application autoscaling takes none beyond 2^360; no fleet has one beyond these.
Target = Annotated[float, Field(ge=0.001, le=1_000_000_000, allow_inf_nan=False)]
ProjectPath = Annotated[str, Field(min_length=1), AfterValidator(_project_path)]
S3Prefix = Annotated[str, Field(max_length=512), AfterValidator(_s3_prefix)]
TagKey = Annotated[
    str,
    Field(min_length=1, max_length=128),
    AfterValidator(_tag_characters),
    AfterValidator(_free_tag),
]
# CloudFormation takes no empty value on an alarm.
TagValue = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_tag_characters)]
# IAM's keys are not case sensitive: a role can have only one of `Team` and `team`.
Tags = Annotated[dict[TagKey, TagValue], AfterValidator(_distinct_tags)]
LogRetentionDays = Annotated[int, BeforeValidator(_log_retention)]
# EC2's ids, old and new; CloudFormation takes no others.
_EC2_ID = "([0-9a-f]{8}|[0-9a-f]{17})"
VpcId = Annotated[str, Field(pattern=rf"^vpc-{_EC2_ID}$")]
SubnetId = Annotated[str, Field(pattern=rf"^subnet-{_EC2_ID}$")]
SecurityGroupId = Annotated[str, Field(pattern=rf"^sg-{_EC2_ID}$")]
RouteTableId = Annotated[str, Field(pattern=rf"^rtb-{_EC2_ID}$")]
TopicArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[\w-]+$")]
# Variables of a container: CreateModel takes 100.
Environment = Annotated[
    dict[
        Annotated[str, Field(pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$", max_length=1024)],
        Annotated[PlainText, Field(max_length=1024)],
    ],
    AfterValidator(_fits_container),
]
