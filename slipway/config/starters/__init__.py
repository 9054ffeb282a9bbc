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
