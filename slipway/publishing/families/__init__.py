"""What publishing does for each serving family."""

from collections.abc import Mapping

from slipway.publishing.families.lmi import LmiPackaging
from slipway.publishing.packaging import Packaging

PACKAGING: Mapping[str, Packaging] = {
    "tensorrt": Packaging(),
    "lmi": LmiPackaging(),
    "triton": Packaging(),
    "neuron": Packaging(),
    "custom": Packaging(),
}
