"""`serving`: the container, a union told apart by `container`."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from slipway.config.sections.serving.custom import CustomServing
from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.sections.serving.neuron import NeuronServing
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.config.sections.serving.triton import TritonServing
from slipway.extensions import extensions

SECTIONS: Mapping[str, Any] = {
    "tensorrt": TensorRTServing,
    "lmi": LmiServing,
    "triton": TritonServing,
    "neuron": NeuronServing,
    "custom": CustomServing,
    **extensions("section"),
}
"""The section of each serving family."""

if TYPE_CHECKING:
    Serving = TensorRTServing | LmiServing | TritonServing | NeuronServing | CustomServing
else:
    _UNION = functools.reduce(operator.or_, SECTIONS.values())
    Serving = Annotated[_UNION, Field(discriminator="container")]
