"""The serving families: one folder each, with everything that planning does for one container.

`FAMILIES` is the only place that names them all. Shared code asks a `Situation`, whose class is the
family's, and never names a family.
"""

from collections.abc import Mapping
from typing import Any

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.valid_subset import UnknownItems
from slipway.facts.instances import InstanceFacts, instance_types
from slipway.planning.families import custom, lmi, neuron, tensorrt, triton
from slipway.planning.families.family import Family
from slipway.planning.partial import UnknownFamily
from slipway.planning.placements import placements_of
from slipway.planning.situation import Situation

FAMILIES: Mapping[str, Family[Any]] = {
    "tensorrt": tensorrt.FAMILY,
    "lmi": lmi.FAMILY,
    "triton": triton.FAMILY,
    "neuron": neuron.FAMILY,
    "custom": custom.FAMILY,
}


def situation_of(
    config: ModelConfig,
    environment: Environment,
    instances: Mapping[str, InstanceFacts] | None = None,
) -> Situation:
    """Returns what planning knows of a config in an environment, as its family sees it.

    Args:
        config: a valid config.
        environment: the environment to deploy to.
        instances: facts of instance types by name; without it, the committed table.
    """
    placements = placements_of(config, instance_types() if instances is None else instances)
    situation: Situation = FAMILIES[config.serving.container].situation(
        config, placements, environment
    )
    return situation


def known_situation(
    config: ModelConfig,
    environment: Environment,
    instances: Mapping[str, InstanceFacts],
) -> Situation:
    """Returns what planning knows of the valid part of a config.

    Args:
        config: the valid part, as `valid_subset` leaves it.
        environment: the environment to deploy to.
        instances: facts of instance types by name.
    """
    try:
        placements = placements_of(config, instances)
    except UnknownValueError:
        placements = UnknownItems()
    try:
        family: type[Situation] = FAMILIES[config.serving.container].situation
    except UnknownValueError:
        family = UnknownFamily
    return family(config, placements, environment)
