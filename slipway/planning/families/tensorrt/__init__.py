"""TensorRT: Slipway's own container, which runs GPT-2 and encoders with an engine for a GPU."""

from slipway.planning.families.family import Family
from slipway.planning.families.tensorrt import rules
from slipway.planning.families.tensorrt.deployment import TensorRT, image_bases
from slipway.planning.partial import rules_of

FAMILY = Family(TensorRT, rules_of(rules), image_bases=image_bases)
