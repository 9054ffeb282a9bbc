"""The instance types that the variants of a config may run on, each with its place in the file."""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, Shadow, Variant, has_own_model
from slipway.errors import FieldPath
from slipway.facts.instances import InstanceFacts, instance_types

# SageMaker's console gives a single variant this name.
DEFAULT_VARIANT_NAME = "AllTraffic"
SERVERLESS = "serverless"
"""The mode without instances, and what messages call the machine that a container runs on."""
_SHARED: FieldPath = ("endpoint", "instances")
_Section = tuple[FieldPath, str, Variant | Shadow | None]


@dataclass(frozen=True)
class Placement:
    """One instance type that a variant may run on, and where the file names it."""

    field: FieldPath
    variant: str
    instance: InstanceFacts


def placements_of(config: ModelConfig, *, every_type: bool = False) -> tuple[Placement, ...]:
    """Returns the instance types of each variant of the endpoint's model, with their facts.

    The shadow is one of them. If every variant has its own model, all are returned: a rule refuses
    that. Fallback types with a model of their own are returned with `every_type`.
    """
    if config.endpoint.mode == SERVERLESS:
        return (Placement(("endpoint", "mode"), DEFAULT_VARIANT_NAME, _serverless(config)),)
    instances, shadow = instance_types(), config.endpoint.shadow
    left_out = frozenset[str]() if every_type else config.endpoint.overridden
    every: list[_Section] = list(variants_of(config))
    sections = [each for each in every if not has_own_model(each[2])] or every
    if shadow is not None and not has_own_model(shadow):
        own = ("endpoint", "shadow", "instances")
        sections.append((own if shadow.instances else _SHARED, SHADOW_VARIANT_NAME, shadow))
    placements = [
        Placement((*field, index), name, instances[instance_type])
        for field, name, section in sections
        for index, instance_type in enumerate(
            (section.instances if section else None) or config.endpoint.instances
        )
        # A rule refuses an override of the first type.
        if not index or instance_type not in left_out
    ]
    return tuple(dict.fromkeys(placements))


def _serverless(config: ModelConfig) -> InstanceFacts:
    sized = config.endpoint.serverless
    memory_gib = None if sized is None else sized.memory_size_mb / 1024
    return InstanceFacts(SERVERLESS, None, memory_gib, "x86_64", None, True, None)


def variants_of(config: ModelConfig) -> Iterator[tuple[FieldPath, str, Variant | None]]:
    """Yields, for each variant, where its instance types stand, its name, and its own section."""
    if not config.endpoint.variants:
        yield _SHARED, DEFAULT_VARIANT_NAME, None
    for index, variant in enumerate(config.endpoint.variants):
        own: FieldPath = ("endpoint", "variants", index, "instances")
        yield (own if variant.instances else _SHARED), variant.name, variant
