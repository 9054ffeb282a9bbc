"""Rejects settings that Slipway cannot deploy yet, and names them in the error."""

from collections.abc import Iterator

from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.errors import FieldPath, Kind, Problem
from slipway.planning.situation import Situation


def unsupported(config: ModelConfig) -> Iterator[Problem]:
    """Yields every part of a config that no stack is there for yet."""
    for field, what in _undeployable(config):
        yield Problem(
            Code.NOT_SUPPORTED_YET,
            Kind.COMPATIBILITY,
            f"{what} is not supported yet",
            "Leave it out for now; docs/reference.md says what is deployed today.",
            field,
        )


def unpublishable(situation: Situation) -> Iterator[tuple[FieldPath, str]]:
    """Yields every part of a config whose files cannot be published yet: field and what it is.

    Such a config can be planned, synthesised and reviewed, and not deployed.
    """
    for (section, name), what in situation.unpublishable.items():
        if getattr(getattr(situation.config, section), name) is not None:
            yield (section, name), what


def _undeployable(config: ModelConfig) -> Iterator[tuple[FieldPath, str]]:
    endpoint, scaling = config.endpoint, config.autoscaling
    if endpoint.mode != "realtime":
        yield ("endpoint", "mode"), f"`mode: {endpoint.mode}`"
    for name in ("shadow", "data_capture", "vpc", "volume_key_arn"):
        if getattr(endpoint, name) is not None:
            yield ("endpoint", name), f"`{name}`"
    if scaling is not None and scaling.schedules:
        yield ("autoscaling", "schedules"), "scaling by schedule"
    if scaling is not None and scaling.steps:
        yield ("autoscaling", "steps"), "scaling by steps"
    if config.rollout.strategy != "all_at_once":
        yield ("rollout", "strategy"), f"`strategy: {config.rollout.strategy}`"
    if config.alarms.at_max_capacity:
        yield ("alarms", "at_max_capacity"), "the alarm `at_max_capacity`"
