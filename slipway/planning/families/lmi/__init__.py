"""LMI: AWS's images of DJL Serving, with FasterTransformer, DeepSpeed, vLLM or TensorRT-LLM."""

from slipway.planning.families.family import Family
from slipway.planning.families.lmi import advice
from slipway.planning.families.lmi.adapter import LmiAdapter
from slipway.planning.families.lmi.deployment import Lmi
from slipway.planning.families.lmi.handlers import compiler_images, image_bases
from slipway.planning.families.lmi.properties import MODEL_VARIABLE
from slipway.planning.families.lmi.rules import RULES
from slipway.planning.partial import rules_of

FAMILY = Family(
    Lmi,
    RULES,
    rules_of(advice),
    image_bases,
    marks_image=b"built",
    compiler_images=compiler_images,
    weights_variable=MODEL_VARIABLE,
    adapter=LmiAdapter,
    is_known=lambda lmi: lmi.is_known,
)
