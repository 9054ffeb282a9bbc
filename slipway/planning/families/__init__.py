"""The serving families: one folder each, with everything that planning does for one container.

`_SLIPWAYS` is the only place that names them all, and `FAMILIES` has those of other packages too.
Shared code asks a `Deployment`, whose class is the family's, and never names a family.
"""

from collections.abc import Mapping
from typing import Any

from slipway.config.environments import Environment
from slipway.config.schema import ModelConfig
from slipway.config.sections.base import UnknownValueError
from slipway.config.sections.serving import PACKAGES
from slipway.config.valid_subset import UnknownItems
from slipway.planning.deployment import Deployment
from slipway.planning.families import custom, lmi, neuron, tensorrt, triton
from slipway.planning.families.family import Family
from slipway.planning.partial import UnknownFamily
from slipway.planning.placements import placements_of

_SLIPWAYS: Mapping[str, Family[Any]] = {
    "tensorrt": tensorrt.FAMILY,
    "lmi": lmi.FAMILY,
    "triton": triton.FAMILY,
    "neuron": neuron.FAMILY,
    "custom": custom.FAMILY,
}
FAMILIES: Mapping[str, Family[Any]] = PACKAGES.beside(_SLIPWAYS, "planning", Family)


def deployment_of(
    config: ModelConfig, environment: Environment, variant: str | None = None
) -> Deployment:
    """Returns what planning knows of a config, or of a variant's own, as its family sees it."""
    entry = FAMILIES[config.serving.container]
    is_adapter = config.adapter_of is not None
    family: type[Deployment] = (is_adapter and entry.adapter) or entry.deployment
    return family(config, placements_of(config), environment, variant)


def known_deployment(config: ModelConfig, environment: Environment) -> Deployment:
    """Returns what planning knows of the valid part of a config, as `valid_subset` leaves it."""
    try:
        placements = placements_of(config)
    except UnknownValueError:
        placements = UnknownItems()
    try:
        family: type[Deployment] = FAMILIES[config.serving.container].deployment
    except (UnknownValueError, KeyError):  # the config's report says why a package has no family
        family = UnknownFamily
    return family(config, placements, environment)
