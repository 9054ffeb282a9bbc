"""The input of a rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from slipway.codes.code import Code
from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.endpoint import Variant
from slipway.config.sections.serving import LmiServing
from slipway.errors import FieldPath, Kind, Problem
from slipway.facts.images import UnknownVersionError
from slipway.facts.instances import InstanceFacts
from slipway.planning.lmi import LmiSetup, lmi_setup

# SageMaker's console gives a single variant this name.
DEFAULT_VARIANT_NAME = "AllTraffic"


@dataclass(frozen=True)
class Placement:
    """One instance type that a variant may run on.

    Args:
        field: where the file names it.
        variant: name of the variant.
        instance: facts of the type.
    """

    field: FieldPath
    variant: str
    instance: InstanceFacts


@dataclass(frozen=True)
class Situation:
    """A config, the instance types it names, and where it is to run."""

    config: ModelConfig
    placements: tuple[Placement, ...]
    environment: Environment

    @cached_property
    def lmi(self) -> LmiSetup | None:
        """Returns the setup of an LMI container; None for others, or an unknown version."""
        serving = self.config.serving
        if not isinstance(serving, LmiServing):
            return None
        try:
            return lmi_setup(serving)
        except UnknownVersionError:
            return None  # a rule of its own says so

    @property
    def instance(self) -> InstanceFacts:
        """Returns the first variant's preferred type."""
        return self.placements[0].instance

    @property
    def instances(self) -> tuple[InstanceFacts, ...]:
        """Returns every type, once."""
        return tuple(dict.fromkeys(placement.instance for placement in self.placements))

    def instances_of(self, variant: str) -> tuple[InstanceFacts, ...]:
        """Returns a variant's types, in order of preference."""
        return tuple(p.instance for p in self.placements if p.variant == variant)


Rule = Callable[[Situation], Iterator[Problem]]


def situation_of(
    config: ModelConfig, instances: Mapping[str, InstanceFacts], environment: Environment
) -> Situation:
    """Returns the input of the rules, with the facts of the instance types that a config names.

    Args:
        config: a valid config.
        instances: facts of instance types by name; has every type of the config.
        environment: the environment to deploy to.
    """
    placements = [
        Placement((*field, index), name, instances[instance_type])
        for field, name, variant in variants_of(config)
        for index, instance_type in enumerate(
            (variant.instances if variant else None) or config.endpoint.instances
        )
    ]
    return Situation(config, tuple(dict.fromkeys(placements)), environment)


def variants_of(config: ModelConfig) -> Iterator[tuple[FieldPath, str, Variant | None]]:
    """Yields, for each variant, where its instance types stand, its name, and its own section."""
    shared: FieldPath = ("endpoint", "instances")
    if not config.endpoint.variants:
        yield shared, DEFAULT_VARIANT_NAME, None
    for index, variant in enumerate(config.endpoint.variants):
        own: FieldPath = ("endpoint", "variants", index, "instances")
        yield (own if variant.instances else shared), variant.name, variant


def problem(code: Code, message: str, remedy: str, field: FieldPath) -> Problem:
    """Makes the problem of values that do not go together.

    Args:
        code: its entry in the table of `slipway.codes`.
        message: what is wrong, with the values and the limit.
        remedy: what to do, as an instruction or a command.
        field: path of the field in the file.
    """
    return Problem(code, Kind.COMPATIBILITY, message, remedy, field)
