"""Runs the encoder and the decoder step with TensorRT; keys and values stay on the GPU.

It ran on an H200 without Triton, see docs/fidelity.md. It needs `tensorrt` and `cuda.bindings`,
which the container's image has, so it is imported only to run engines.
`containers/tensorrt/export/t5.py` has the inputs and outputs of both graphs. This module keeps to
Python 3.10.

The encoder writes the keys and values of the texts once. They move only when rows end. The decoder
reads them in every step, and appends to the keys and values of the answers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tensorrt as trt

from containers.serving.logs import log_info
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    Gpu,
    ModelSizes,
    check_engine,
    read_metadata,
)
from containers.tensorrt.runtimes.tensorrt.cache import CacheLayout, CacheMemory, DeviceCache
from containers.tensorrt.runtimes.tensorrt.device_memory import (
    ALIGNMENT_BYTES,
    DeviceError,
    Stream,
    allocate,
    free_bytes,
    use_gpu,
)
from containers.tensorrt.runtimes.tensorrt.engine import (
    Engine,
    EngineContract,
    cache_tensors,
    check_logits,
    create_context,
    logits_tensor,
    open_engine,
    token_tensors,
)
from containers.tensorrt.runtimes.tensorrt.step_memory import (
    FLOAT_TYPES,
    LogitsMemory,
    TokenMemory,
    token_bytes,
)
from containers.tensorrt.stepping import cache_names
from containers.triton.decoding import Float32Array, Int64Array
from containers.triton.engine_metadata import (
    DECODER_ENGINE,
    ENCODER_ENGINE,
    FIRST_STEP_PROFILE,
    LATER_STEPS_PROFILE,
    decoder_profiles,
    encoder_profiles,
    max_past_tokens,
)
from containers.triton.model_directory import DECODER, ENCODER, GRAPH_SUFFIX

_ENCODER_INPUTS: Final = ("input_ids", "attention_mask")
_DECODER_INPUTS: Final = ("input_ids", "encoder_attention_mask")
_ENCODER_PROFILE: Final = 0
_CROSS: Final = "cross_key_values"
_PAST: Final = "past_key_values"
_PRESENT: Final = "present"
# A batch has one cache of each kind, and another arena is written next.
_ARENAS: Final = 2
# One for the encoder, and one for each profile of the decoder.
_DECODER_CONTEXTS: Final = 2


@dataclass(frozen=True)
class State:
    """The keys and values of a batch's rows; the mask, 0 on padding, is on the host.

    `cross` is of the texts, and `past` of the answers so far, None before the first step.
    """

    mask: Int64Array
    cross: DeviceCache
    past: DeviceCache | None


class TensorRTSequenceSession:
    """A `SequenceSession` on the GPU.

    All memory is allocated here, for the largest batches of the engines. Raises `ModelLoadError` if
    TensorRT creates no execution context, or the logits have more positions, and `DeviceError` if
    CUDA refuses memory or a stream.
    """

    def __init__(self, encoder: Engine, decoder: Engine, metadata: EngineMetadata) -> None:
        sizes = _BufferSizes(metadata)
        self._encoder, self._decoder = encoder, decoder
        self._metadata = metadata
        self._stream = Stream()
        self._encoder_context = create_context(encoder, _ENCODER_PROFILE, self._stream.handle)
        # One context per profile, since a context that changes its profile loses its shapes.
        self._first_context, self._later_context = (
            create_context(decoder, profile, self._stream.handle)
            for profile in (FIRST_STEP_PROFILE, LATER_STEPS_PROFILE)
        )
        self._stream.synchronize()
        check_logits(decoder, self._first_context, metadata)
        self._cross = CacheMemory(sizes.cross, self._stream, _ARENAS)
        self._past = CacheMemory(sizes.past, self._stream, _ARENAS)
        self._cross_names, self._past_names, self._present_names = (
            cache_names(prefix, metadata.layers) for prefix in (_CROSS, _PAST, _PRESENT)
        )
        # Even an input without columns needs an address, and each input its own.
        nothing = allocate(sizes.nothing)
        self._nothing = [nothing + i * ALIGNMENT_BYTES for i in range(len(self._past_names))]
        self._tokens = TokenMemory(sizes.inputs, self._stream)
        self._logits = LogitsMemory(
            metadata.max_batch_size, metadata.vocabulary_size, metadata.precision, self._stream
        )

    def encode(self, input_ids: Int64Array, attention_mask: Int64Array) -> State:
        rows, columns = input_ids.shape
        layout = self._cross.layout
        if rows > layout.max_rows or columns > layout.max_columns:
            raise ValueError(
                f"a batch of {rows} rows and {columns} columns; the encoder takes at most "
                f"{layout.max_rows} and {layout.max_columns}"
            )
        context, target = self._encoder_context, self._cross.claim()
        inputs = dict(zip(_ENCODER_INPUTS, (input_ids, attention_mask), strict=True))
        self._tokens.bind(self._encoder, context, inputs)
        addresses = self._cross.addresses(target, columns)
        for name, address in zip(self._cross_names, addresses, strict=True):
            self._encoder.accept(context.set_tensor_address(name, address), name)
        self._encoder.accept(context.execute_async_v3(self._stream.handle), "the encoder")
        # The first step writes its tokens to the same memory of the host.
        self._stream.synchronize()
        return State(attention_mask, self._cross.issue(target, rows, columns), None)

    def step(self, tokens: Int64Array, state: State) -> tuple[Float32Array, State]:
        rows, columns = state.mask.shape
        past_columns = 0 if state.past is None else state.past.columns
        if past_columns >= self._past.layout.max_columns:
            raise ValueError(
                f"a step after {past_columns} tokens; the decoder makes at most "
                f"{self._past.layout.max_columns}"
            )
        cross = self._cross.take(state.cross)
        if state.past is None:
            context, past_addresses = self._first_context, self._nothing
            target = self._past.claim()
        else:
            past = self._past.take(state.past)
            context, past_addresses = (
                self._later_context,
                self._past.addresses(past, past_columns),
            )
            target = self._past.claim(past)
        inputs = dict(zip(_DECODER_INPUTS, (tokens, state.mask), strict=True))
        self._tokens.bind(self._decoder, context, inputs)
        self._bind_caches(context, self._past_names, past_addresses, rows, past_columns)
        cross_addresses = self._cross.addresses(cross, columns)
        self._bind_caches(context, self._cross_names, cross_addresses, rows, columns)
        present_addresses = self._past.addresses(target, past_columns + 1)
        for name, address in zip(self._present_names, present_addresses, strict=True):
            self._decoder.accept(context.set_tensor_address(name, address), name)
        self._logits.bind(self._decoder, context)
        self._decoder.accept(context.execute_async_v3(self._stream.handle), "the step")
        return self._logits.read(0, rows), State(
            state.mask,
            self._cross.issue(cross, rows, columns),
            self._past.issue(target, rows, past_columns + 1),
        )

    def select(self, state: State, rows: Sequence[int]) -> State:
        return State(
            state.mask[rows],
            self._cross.select(state.cross, rows, 0),
            None if state.past is None else self._past.select(state.past, rows, 0),
        )

    def _bind_caches(
        self,
        context: trt.IExecutionContext,
        names: Sequence[str],
        addresses: Sequence[int],
        rows: int,
        columns: int,
    ) -> None:
        shape = (rows, self._metadata.heads, columns, self._metadata.head_dim)
        for name, address in zip(names, addresses, strict=True):
            self._decoder.accept(context.set_input_shape(name, shape), name)
            self._decoder.accept(context.set_tensor_address(name, address), name)


class _BufferSizes:
    """The bytes of everything that a session allocates, for the largest batches of its engines."""

    def __init__(self, metadata: EngineMetadata) -> None:
        itemsize = FLOAT_TYPES[metadata.precision].itemsize
        self.cross, self.past = (
            CacheLayout(
                tensors=2 * metadata.layers,
                heads=metadata.heads,
                column_bytes=metadata.head_dim * itemsize,
                max_rows=metadata.max_batch_size,
                max_columns=columns,
            )
            for columns in (metadata.max_input_tokens, max_past_tokens(metadata) + 1)
        )
        self.arenas = _ARENAS * (self.cross.arena_bytes + self.past.arena_bytes)
        self.nothing = self.past.tensors * ALIGNMENT_BYTES
        # The encoder's tokens and mask take the most.
        tokens = metadata.max_batch_size * metadata.max_input_tokens
        self.inputs = token_bytes([tokens, tokens])
        self.logits = metadata.max_batch_size * metadata.vocabulary_size * itemsize
        self.total = self.arenas + self.nothing + self.inputs + self.logits


def open_engine_session(
    model_dir: Path, config: ModelSizes, limits: EngineLimits, device: int
) -> TensorRTSequenceSession:
    """Opens both engines, and logs what serves; `ModelLoadError` says why they cannot serve."""
    try:
        gpu = use_gpu(device)
    except DeviceError as error:
        raise ModelLoadError(
            f"{ENCODER_ENGINE} needs a GPU, and CUDA finds none that it can use: {error}; deploy "
            "on an instance type with the GPU that it was built for, or publish the model for the "
            "CPU"
        ) from error
    metadata = read_metadata(model_dir)
    check_engine(
        metadata,
        tensorrt_version=trt.__version__,
        compute_capability=gpu.compute_capability,
        config=config,
        max_batch_size=limits.max_batch_size,
        max_input_tokens=limits.max_input_tokens,
        max_new_tokens=limits.max_new_tokens,
        engine=f"the pair of {ENCODER_ENGINE} and {DECODER_ENGINE}",
    )
    try:
        encoder, decoder = (
            open_engine(model_dir, contract, metadata.graph_sha256)
            for contract in _contracts(metadata)
        )
        sizes = _BufferSizes(metadata)
        _check_memory(encoder, decoder, metadata, sizes, gpu)
        session = TensorRTSequenceSession(encoder, decoder, metadata)
        free = free_bytes()
    except DeviceError as error:
        raise ModelLoadError(
            f"{ENCODER_ENGINE} and {DECODER_ENGINE} cannot be loaded onto {gpu.name}: {error}"
        ) from error
    rebuilt = [each.contract.file for each in (encoder, decoder) if each.is_rebuilt]
    log_info(
        "backend_selected",
        backend="tensorrt",
        version=trt.__version__,
        gpu=gpu.name,
        device=device,
        compute_capability=gpu.compute_capability,
        precision=metadata.precision,
        max_batch_size=metadata.max_batch_size,
        max_input_tokens=metadata.max_input_tokens,
        max_new_tokens=metadata.max_new_tokens,
        cache_bytes=sizes.arenas,
        free_gpu_bytes=free,
        reason=f"built anew, because damaged: {', '.join(rebuilt)}"
        if rebuilt
        else f"the model directory holds {ENCODER_ENGINE} and {DECODER_ENGINE}",
    )
    return session


def _contracts(metadata: EngineMetadata) -> tuple[EngineContract, EngineContract]:
    encoder_graph, decoder_graph = f"{ENCODER}{GRAPH_SUFFIX}", f"{DECODER}{GRAPH_SUFFIX}"
    graphs = (decoder_graph, encoder_graph)
    cross = cache_tensors(_CROSS, metadata)
    encoder = EngineContract(
        file=ENCODER_ENGINE,
        graph=encoder_graph,
        all_graphs=graphs,
        profiles=encoder_profiles(metadata),
        inputs=token_tensors(_ENCODER_INPUTS),
        outputs=cross,
    )
    decoder = EngineContract(
        file=DECODER_ENGINE,
        graph=decoder_graph,
        all_graphs=graphs,
        profiles=decoder_profiles(metadata),
        inputs=token_tensors(_DECODER_INPUTS) | cache_tensors(_PAST, metadata) | cross,
        outputs=logits_tensor(metadata) | cache_tensors(_PRESENT, metadata),
    )
    return encoder, decoder


def _check_memory(
    encoder: Engine, decoder: Engine, metadata: EngineMetadata, sizes: _BufferSizes, gpu: Gpu
) -> None:
    # Each context has its own memory for activations.
    contexts = (
        encoder.cuda_engine.device_memory_size_v2
        + _DECODER_CONTEXTS * decoder.cuda_engine.device_memory_size_v2
    )
    needed, free = sizes.total + contexts, free_bytes()
    if needed > free:
        raise ModelLoadError(
            f"the engines need {needed} more bytes of GPU memory for batches of "
            f"{metadata.max_batch_size} rows, texts of {metadata.max_input_tokens} tokens and "
            f"answers of {metadata.max_new_tokens} ({sizes.arenas} of them for keys and values), "
            f"and {gpu.name} has {free} free: take an instance type with more, lower the number "
            "of instances on a GPU, or publish the model with a smaller max_batch_size, "
            "max_input_tokens or max_new_tokens"
        )
