"""Rejects settings that Slipway cannot deploy yet, and names them in the error."""

from collections.abc import Iterator, Mapping

from slipway.codes.code import Code
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.errors import FieldPath, Kind, Problem
from slipway.planning.situation import Situation

DEPLOYABLE: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("endpoint", "mode"): ("realtime", "async"),
}
"""Fields that Slipway does not deploy yet, with the values that it does deploy, if any."""


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
    for (section, name), deployable in DEPLOYABLE.items():
        try:
            value = getattr(getattr(config, section), name, None)
        except UnknownValueError:
            continue
        if value and value not in deployable:
            yield (section, name), f"`{name}: {value}`" if deployable else f"`{name}`"
