"""`defaults` of environments.yaml: values that models take where their files say nothing."""

from typing import Any

from pydantic import Field

from slipway.config.sections.alarms import Alarms
from slipway.config.sections.base import LogRetentionDays, Section, Tags

# Any: a model must have this alarm, and a default need not.
_NO_LATENCY: Any = Field(
    None,
    gt=0,
    le=3_600_000,
    description="As `alarms.model_latency_p99_milliseconds` of a model, which then needs none.",
    examples=[600],
)


class AlarmDefaults(Alarms):
    """Fields of a model's `alarms`."""

    model_latency_p99_milliseconds: int | None = _NO_LATENCY  # type: ignore[assignment]


class EndpointDefaults(Section):
    """Fields of a model's `endpoint`. The network of all endpoints is the environment's."""

    log_retention_days: LogRetentionDays | None = Field(
        None, description="As `endpoint.log_retention_days` of a model.", examples=[90]
    )


class Defaults(Section):
    """Sections as a model's file has them. They are laid under every model."""

    tags: Tags = Field(
        default_factory=dict,
        max_length=47,
        description="Tags of every model, beside the model's own.",
        examples=[{"team": "search"}],
    )
    alarms: AlarmDefaults = Field(
        AlarmDefaults.model_validate({}), description="Alarms of every model."
    )
    endpoint: EndpointDefaults = Field(
        EndpointDefaults.model_validate({}), description="Settings of every endpoint."
    )
