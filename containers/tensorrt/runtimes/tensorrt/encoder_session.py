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
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.profiles import encoder_profiles
from containers.tensorrt.engine_metadata import ENGINE_FILE, REMEDY
from containers.tensorrt.model_directory import GRAPH_FILE
from containers.tensorrt.runtimes.tensorrt.device_memory import Stream, allocate
from containers.tensorrt.runtimes.tensorrt.engine import (
    ANY,
    TYPES,
    Engine,
    EngineContract,
    check_memory,
    create_contexts,
    gpu_for,
    log_selected,
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
        contexts = create_contexts(engine, self._stream)
        self._contexts = dict(zip(manifest.buckets, contexts, strict=True))
        tokens = manifest.batch_size * manifest.buckets[-1]
        self._tokens = TokenMemory(token_bytes([tokens] * len(self._inputs)), self._stream)
        for name, shape in engine.contract.largest_inputs(len(contexts) - 1).items():
            engine.accept(contexts[-1].set_input_shape(name, shape), name)
        sizes = {name: self._size_bytes(contexts[-1], name) for name in manifest.outputs}
        self._addresses = {name: allocate(size) for name, size in sizes.items()}
        self._host = {name: np.zeros(size, np.uint8) for name, size in sizes.items()}

    def run(self, inputs: Inputs) -> Outputs:
        context = self._contexts[inputs[self._inputs[0]].shape[1]]
        self._tokens.bind(self._engine, context, {name: inputs[name] for name in self._inputs})
        self._engine.bind(context, self._addresses.items())
        self._engine.accept(context.execute_async_v3(self._stream.handle), "the batch")
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
    with gpu_for(ENGINE_FILE, instead="the model for the CPU") as gpu:
        if gpu.compute_capability != manifest.target:
            raise ModelLoadError(
                f"{ENGINE_FILE} cannot serve here: it was built for {manifest.target}, and this "
                f"GPU is {gpu.compute_capability} ({gpu.name}); {REMEDY}"
            )
        engine = open_engine(model_dir, _contract(manifest), None)
        check_memory(
            gpu,
            [engine],
            0,
            needs=f"{ENGINE_FILE} needs",
            sizes=f"{manifest.batch_size} rows and {manifest.buckets[-1]} columns",
            remedy="or publish the model with a smaller batch_size or fewer sequence_lengths",
        )
        session = EncoderSession(engine, manifest)
        log_selected(
            gpu,
            precision=manifest.dtype,
            batch_size=manifest.batch_size,
            sequence_lengths=manifest.buckets,
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
