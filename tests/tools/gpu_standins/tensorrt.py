"""The stand-in for TensorRT in the place of the real package, for whole processes."""

import shutil
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

from cuda.bindings import runtime

from tests.containers.tensorrt.runtimes.tensorrt_building import Parser
from tests.containers.tensorrt.runtimes.tensorrt_standin import TensorRTStandIn


class CopyingParser(Parser):
    """The engine computes the graph, which a compile job removes: it keeps a copy."""

    def parse_from_file(self, path: str) -> bool:
        kept = Path(tempfile.mkdtemp(), "graph")
        shutil.copytree(Path(path).parent, kept)
        return super().parse_from_file(str(kept / Path(path).name))


class ProcessWideStandIn(TensorRTStandIn):
    def OnnxParser(self, network: Any, log: Any) -> Any:  # noqa: N802
        return CopyingParser(self, network, log)


made = ProcessWideStandIn(runtime)
made.__spec__ = ModuleSpec(__name__, None)  # type: ignore[attr-defined]
sys.modules[__name__] = made  # type: ignore[assignment]
