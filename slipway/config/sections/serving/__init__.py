"""`serving`: the container, a union told apart by `container`."""

from typing import Annotated

from pydantic import Field

from slipway.config.sections.serving.custom import CustomServing
from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.sections.serving.neuron import NeuronServing
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.config.sections.serving.triton import TritonServing

Serving = Annotated[
    TensorRTServing | LmiServing | TritonServing | NeuronServing | CustomServing,
    Field(discriminator="container"),
]
