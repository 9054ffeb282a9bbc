"""Runs an encoder's engine on the GPU: a batch in, its outputs out."""

import math
from pathlib import Path

import numpy as np
import tensorrt as trt

from containers.encoders.manifest import (
    ENCODER_FILE,
    QUESTION_ANSWERING,
    SEQUENCE_CLASSIFICATION,
    Manifest,
)
from containers.encoders.session import Inputs, Outputs
from containers.serving.logs import log_info
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.profiles import encoder_profiles
from containers.tensorrt.engine_metadata import ENGINE_FILE, REMEDY
from containers.tensorrt.model_directory import GRAPH_FILE
from containers.tensorrt.runtimes.tensorrt.device_memory import (
    DeviceError,
    Stream,
    allocate,
    free_bytes,
    use_gpu,
)
from containers.tensorrt.runtimes.tensorrt.engine import (
    ANY,
    TYPES,
    Engine,
    EngineContract,
    create_context,
    open_engine,
    token_tensors,
)
from containers.tensorrt.runtimes.tensorrt.step_memory import (
    FLOAT_TYPES,
    TokenMemory,
    token_bytes,
)


class EncoderSession:
    """A `Session` on the GPU, for one batch at a time.

    All memory is allocated here, for the largest batches of the engine.
    """

    def __init__(self, engine: Engine, manifest: Manifest) -> None:
        self._engine = engine
        self._inputs = manifest.inputs
        self._float_type = FLOAT_TYPES[manifest.dtype]
        self._stream = Stream()
        # One context per profile, since a context that changes its profile loses its shapes.
        self._contexts = {
            length: create_context(engine, number, self._stream.handle)
            for number, length in enumerate(manifest.buckets)
        }
        self._stream.synchronize()
        tokens = manifest.batch_size * manifest.buckets[-1]
        self._tokens = TokenMemory(token_bytes([tokens] * len(self._inputs)), self._stream)
        longest = self._contexts[manifest.buckets[-1]]
        for name, shape in engine.contract.largest_inputs(len(manifest.buckets) - 1).items():
            engine.accept(longest.set_input_shape(name, shape), name)
        sizes = {name: self._size_bytes(longest, name) for name in manifest.outputs}
        self._addresses = {name: allocate(size) for name, size in sizes.items()}
        self._host = {name: np.zeros(size, np.uint8) for name, size in sizes.items()}

    def run(self, inputs: Inputs) -> Outputs:
        context = self._contexts[inputs[self._inputs[0]].shape[1]]
        accept = self._engine.accept
        self._tokens.bind(self._engine, context, {name: inputs[name] for name in self._inputs})
        for name, address in self._addresses.items():
            accept(context.set_tensor_address(name, address), name)
        accept(context.execute_async_v3(self._stream.handle), "the batch")
        found = {}
        for name, address in self._addresses.items():
            found[name] = self._host[name][: self._size_bytes(context, name)]
            self._stream.download(address, found[name])
        self._stream.synchronize()
        # A copy, because the next batch writes here.
        return {
            name: values.view(self._float_type)
            .reshape(tuple(context.get_tensor_shape(name)))
            .astype(np.float32)
            for name, values in found.items()
        }

    def _size_bytes(self, context: trt.IExecutionContext, name: str) -> int:
        values: int = math.prod(tuple(context.get_tensor_shape(name)))
        return values * self._float_type.itemsize


def open_encoder_session(model_dir: Path, manifest: Manifest) -> EncoderSession:
    """Opens model.engine, and logs what serves; a `ModelLoadError` says why it cannot."""
    try:
        gpu = use_gpu()
    except DeviceError as error:
        raise ModelLoadError(
            f"{ENGINE_FILE} needs a GPU, and CUDA finds none that it can use: {error}; deploy on "
            "an instance type with the GPU that it was built for, or publish the model for the CPU"
        ) from error
    if gpu.compute_capability != manifest.target:
        raise ModelLoadError(
            f"{ENGINE_FILE} cannot serve here: it was built for {manifest.target}, and this GPU is "
            f"{gpu.compute_capability} ({gpu.name}); {REMEDY}"
        )
    try:
        engine = open_engine(model_dir, _contract(manifest), None)
        needed = len(manifest.buckets) * engine.cuda_engine.device_memory_size_v2
        if needed > (free := free_bytes()):
            raise ModelLoadError(
                f"{ENGINE_FILE} needs {needed} more bytes of GPU memory for batches of "
                f"{manifest.batch_size} rows and {manifest.buckets[-1]} columns, and {gpu.name} "
                f"has {free} free: take an instance type with more, or publish the model with a "
                "smaller batch_size or fewer sequence_lengths"
            )
        session = EncoderSession(engine, manifest)
        free = free_bytes()
    except DeviceError as error:
        raise ModelLoadError(f"{ENGINE_FILE} cannot be loaded onto {gpu.name}: {error}") from error
    log_info(
        "backend_selected",
        backend="tensorrt",
        version=trt.__version__,
        gpu=gpu.name,
        compute_capability=gpu.compute_capability,
        precision=manifest.dtype,
        batch_size=manifest.batch_size,
        sequence_lengths=manifest.buckets,
        free_gpu_bytes=free,
        reason=f"{ENCODER_FILE} names {ENGINE_FILE}",
    )
    return session


def _contract(manifest: Manifest) -> EngineContract:
    # A number of each token, or of each label of a text; otherwise several of each token.
    rank = 2 if manifest.task in (QUESTION_ANSWERING, SEQUENCE_CLASSIFICATION) else 3
    return EngineContract(
        file=ENGINE_FILE,
        graph=GRAPH_FILE,
        all_graphs=(GRAPH_FILE,),
        profiles=encoder_profiles(manifest.inputs, manifest.batch_size, manifest.buckets),
        inputs=token_tensors(manifest.inputs),
        outputs=dict.fromkeys(manifest.outputs, (TYPES[manifest.dtype], (ANY,) * rank)),
        description=ENCODER_FILE,
    )
