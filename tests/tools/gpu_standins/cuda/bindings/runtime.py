"""The stand-in for CUDA's runtime in the place of the real bindings, for whole processes."""

import sys
from importlib.machinery import ModuleSpec

from tests.containers.tensorrt.runtimes.cuda_standin import CudaStandIn

made = CudaStandIn()
made.__spec__ = ModuleSpec(__name__, None)  # type: ignore[attr-defined]
sys.modules[__name__] = made  # type: ignore[assignment]
