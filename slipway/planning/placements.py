"""The instance types that the variants of a config may run on, each with its place in the file."""

from collections.abc import Iterator
from dataclasses import dataclass

from slipway.config.schema import ModelConfig
from slipway.config.sections.endpoint import SHADOW_VARIANT_NAME, Variant, has_own_model
from slipway.errors import FieldPath
from slipway.facts.instances import InstanceFacts, instance_types

# SageMaker's console gives a single variant this name.
DEFAULT_VARIANT_NAME = "AllTraffic"
SERVERLESS = "serverless"
"""The mode without instances, and what messages call the machine that a container runs on."""


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
    instances = instance_types()
    left_out = frozenset[str]() if every_type else config.endpoint.overridden
    is_own = [has_own_model(variant) for _, _, variant in variants_of(config)]
    placements = [
        Placement((*field, index), name, instances[instance_type])
        for (field, name, variant), has_own in zip(variants_of(config), is_own, strict=True)
        if not has_own or all(is_own)
        for index, instance_type in enumerate(
            (variant.instances if variant else None) or config.endpoint.instances
        )
        # A rule refuses an override of the first type.
        if not index or instance_type not in left_out
    ]
    shadow = config.endpoint.shadow
    if shadow is not None and not has_own_model(shadow):
        field: FieldPath = ("endpoint", "instances")
        if shadow.instances:
            field = ("endpoint", "shadow", "instances")
        placements += [
            Placement((*field, index), SHADOW_VARIANT_NAME, instances[instance_type])
            for index, instance_type in enumerate(shadow.instances or config.endpoint.instances)
            if not index or instance_type not in left_out
        ]
    return tuple(dict.fromkeys(placements))


def _serverless(config: ModelConfig) -> InstanceFacts:
    sized = config.endpoint.serverless
    memory_gib = None if sized is None else sized.memory_size_mb / 1024
    return InstanceFacts(SERVERLESS, None, memory_gib, "x86_64", None, True, None)


def variants_of(config: ModelConfig) -> Iterator[tuple[FieldPath, str, Variant | None]]:
    """Yields, for each variant, where its instance types stand, its name, and its own section."""
    shared: FieldPath = ("endpoint", "instances")
    if not config.endpoint.variants:
        yield shared, DEFAULT_VARIANT_NAME, None
    for index, variant in enumerate(config.endpoint.variants):
        own: FieldPath = ("endpoint", "variants", index, "instances")
        yield (own if variant.instances else shared), variant.name, variant
