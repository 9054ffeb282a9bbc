"""A machine whose GPU, CUDA and TensorRT are stand-ins, and model directories published for it."""

import contextlib
import importlib
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

import pytest

from containers.tensorrt.compile.profiles import profiles
from containers.tensorrt.engine_metadata import (
    ENGINE_FILE,
    EngineLimits,
    EngineMetadata,
    candidate_count,
    graph_digest,
    write_metadata,
)
from containers.tensorrt.model_directory import read_config
from containers.tensorrt.settings import GenerationSettings
from tests.containers.tensorrt.runtimes.cuda_standin import CudaStandIn
from tests.containers.tensorrt.runtimes.tensorrt_standin import VERSION, TensorRTStandIn
from tests.containers.tensorrt.runtimes.tensorrt_types import DataType

SAMPLE = Path("samples/gpt2-autocomplete/model").absolute()
# Every limit is another number.
LIMITS = EngineLimits(max_batch_size=6, max_input_tokens=24, max_new_tokens=40)
ABOUT = {
    "tensorrt_version": VERSION,
    "compute_capability": "sm86",
    "gpu_name": "NVIDIA A10G",
    "graph_sha256": "0" * 64,
    "precision": "fp16",
}
SETTINGS = GenerationSettings(max_input_tokens=24, max_new_tokens=40)
_FLOAT_TYPES = {"fp16": DataType.HALF, "fp32": DataType.FLOAT}
_RUNTIME = "containers.tensorrt.runtimes.tensorrt"
_SEQUENCE_SESSION = "containers.triton.tensorrt_session"
_BUILDER = "containers.tensorrt.compile.engine_builder"


@dataclass
class Machine:
    """The stand-ins, and the container's modules that were imported on top of them."""

    cuda: CudaStandIn
    tensorrt: TensorRTStandIn

    def module(self, name):
        return importlib.import_module(f"{_RUNTIME}.{name}")

    def publish(self, model_dir, *, precision="fp16", keep_graph=False, **changes):
        """Compiles the sample's graph for this machine, with the container's own builder."""
        for name in ("config.json", "tokenizer.json", "generation_config.json"):
            shutil.copy2(SAMPLE / name, model_dir)
        graph = model_dir / "model.onnx" if keep_graph else SAMPLE / "model.onnx"
        weights = graph.with_name("model.safetensors")
        if keep_graph:
            shutil.copy2(SAMPLE / "model.onnx", graph)
            shutil.copy2(SAMPLE / "model.safetensors", weights)
        config = read_config(SAMPLE)
        about = ABOUT | {"graph_sha256": graph_digest(graph, [weights]), "precision": precision}
        metadata = replace(EngineMetadata.of(LIMITS, config, **about), **changes)
        self.tensorrt.float_type = _FLOAT_TYPES[precision]
        builder = importlib.import_module(_BUILDER)
        candidates = candidate_count(config.vocabulary_size)
        built = builder.build_engine(graph, profiles(metadata), candidates=candidates)
        (model_dir / ENGINE_FILE).write_bytes(built.plan)
        write_metadata(model_dir, metadata)
        return metadata

    def open(self, model_dir, settings=SETTINGS, *, max_batch_size=LIMITS.max_batch_size):
        from containers.tensorrt.runtimes.selection import open_session

        return open_session(
            model_dir, read_config(model_dir), settings, max_batch_size=max_batch_size
        )


@contextlib.contextmanager
def standin_machine(compute=None, **gpu):
    """Makes whoever imports `cuda.bindings.runtime` or `tensorrt` get stand-ins."""
    cuda = CudaStandIn(**gpu)
    tensorrt = TensorRTStandIn(cuda, compute=compute)
    package, bindings = ModuleType("cuda"), ModuleType("cuda.bindings")
    bindings.runtime = cuda  # type: ignore[attr-defined]
    before = _forget()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cuda", package)
        patch.setitem(sys.modules, "cuda.bindings", bindings)
        patch.setitem(sys.modules, "cuda.bindings.runtime", cuda)
        patch.setitem(sys.modules, "tensorrt", tensorrt)
        try:
            yield Machine(cuda, tensorrt)
        finally:
            _forget()
            for name, module in before.items():
                sys.modules[name] = module
                package_name, _, own_name = name.rpartition(".")
                setattr(sys.modules[package_name], own_name, module)


def _forget():
    """Makes the next import of what imports CUDA or TensorRT a new one; returns what there was."""
    names = [
        name
        for name in sys.modules
        if name in (_BUILDER, _RUNTIME, _SEQUENCE_SESSION) or name.startswith(f"{_RUNTIME}.")
    ]
    return {name: sys.modules.pop(name) for name in sorted(names)}
