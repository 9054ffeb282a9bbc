"""A first config of each serving family."""

from collections.abc import Mapping

from slipway.config.starters import custom, lmi, neuron, tensorrt, triton
from slipway.config.starters.starter import Starter

STARTERS: Mapping[str, Starter] = {
    "tensorrt": tensorrt.STARTER,
    "lmi": lmi.STARTER,
    "triton": triton.STARTER,
    "neuron": neuron.STARTER,
    "custom": custom.STARTER,
}
# For models of any other family.
DEFAULT = "lmi"


def suiting(family: str | None) -> str:
    """Returns the container that is proposed for a family of models."""
    return next((name for name, each in STARTERS.items() if family in each.suits), DEFAULT)
