"""`serving`: the container, a union told apart by `container`."""

from typing import TYPE_CHECKING, Annotated, Final, Union

from pydantic import Field

from slipway.config.family_entries import family_entries
from slipway.config.fields import tag_of
from slipway.config.sections.serving.custom import CustomServing
from slipway.config.sections.serving.lmi import LmiServing
from slipway.config.sections.serving.neuron import NeuronServing
from slipway.config.sections.serving.packages import FamilyPackages
from slipway.config.sections.serving.tensorrt import TensorRTServing
from slipway.config.sections.serving.triton import TritonServing

_Own = TensorRTServing | LmiServing | TritonServing | NeuronServing | CustomServing
_SECTIONS = (TensorRTServing, LmiServing, TritonServing, NeuronServing, CustomServing)
PACKAGES: Final = FamilyPackages([str(tag_of(each)) for each in _SECTIONS], family_entries())

if TYPE_CHECKING:
    Serving = Annotated[_Own, Field(discriminator="container")]
else:
    _ALL = (*_SECTIONS, *PACKAGES.sections.values())
    Serving = Annotated[Union[_ALL], Field(discriminator="container")]  # noqa: UP007  # computed
