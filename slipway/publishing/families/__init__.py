"""What publishing does for each serving family."""

from collections.abc import Mapping

from slipway.config.sections.serving import PACKAGES
from slipway.publishing.families.lmi import LmiPackaging
from slipway.publishing.families.tensorrt import TensorRTPackaging
from slipway.publishing.packaging import Packaging

_SLIPWAYS: Mapping[str, Packaging] = {
    "tensorrt": TensorRTPackaging(),
    "lmi": LmiPackaging(),
    "triton": Packaging(),
    "neuron": Packaging(),
    "custom": Packaging(),
}
PACKAGING = PACKAGES.beside(_SLIPWAYS, "packaging", Packaging, Packaging())
