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

from containers.tensorrt.engine_metadata import (
    EngineLimits,
    EngineMetadata,
    ModelSizes,
    check_engine,
    read_metadata,
)
from containers.tensorrt.runtimes.tensorrt.cache import CacheLayout, CacheMemory, DeviceCache
from containers.tensorrt.runtimes.tensorrt.device_memory import Stream
from containers.tensorrt.runtimes.tensorrt.engine import (
    Engine,
    EngineContract,
    cache_tensors,
    check_logits,
    check_memory,
    create_contexts,
    gpu_for,
    log_selected,
    logits_tensor,
    open_engine,
    token_tensors,
)
from containers.tensorrt.runtimes.tensorrt.step_memory import (
    LogitsMemory,
    TokenMemory,
    logits_bytes,
    token_bytes,
)
from containers.tensorrt.stepping import LOGITS, cache_names
from containers.triton.decoding import Float32Array, Int64Array
from containers.triton.engine_metadata import (
    decoder_profiles,
    encoder_profiles,
    max_past_tokens,
)
from containers.triton.model_directory import (
    DECODER_ENGINE,
    DECODER_GRAPH,
    ENCODER_ENGINE,
    ENCODER_GRAPH,
)

_ENCODER_INPUTS: Final = ("input_ids", "attention_mask")
_DECODER_INPUTS: Final = ("input_ids", "encoder_attention_mask")
_CROSS: Final = "cross_key_values"
_PAST: Final = "past_key_values"
_PRESENT: Final = "present"
# A batch has one cache of each kind, and another arena is written next.
_ARENAS: Final = 2


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
        [self._encoder_context] = create_contexts(encoder, self._stream)
        self._first_context, self._later_context = create_contexts(decoder, self._stream)
        check_logits(decoder, self._first_context, metadata)
        self._cross = CacheMemory(sizes.cross, self._stream, _ARENAS)
        self._past = CacheMemory(sizes.past, self._stream, _ARENAS)
        self._cross_names, self._past_names, self._present_names = (
            cache_names(prefix, metadata.layers) for prefix in (_CROSS, _PAST, _PRESENT)
        )
        self._nothing = sizes.past.allocate_nothing()
        self._tokens = TokenMemory(sizes.inputs, self._stream)
        self._logits = LogitsMemory(metadata, self._stream)

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
        self._encoder.bind(context, zip(self._cross_names, addresses, strict=True))
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
        self._decoder.bind(context, zip(self._present_names, present_addresses, strict=True))
        self._decoder.bind(context, [(LOGITS, self._logits.address)])
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
        self._decoder.bind(context, zip(names, addresses, strict=True), shape)


class _BufferSizes:
    """The bytes of everything that a session allocates, for the largest batches of its engines."""

    def __init__(self, metadata: EngineMetadata) -> None:
        self.cross = CacheLayout.of(metadata, metadata.max_input_tokens)
        self.past = CacheLayout.of(metadata, max_past_tokens(metadata) + 1)
        self.arenas = _ARENAS * (self.cross.arena_bytes + self.past.arena_bytes)
        # The encoder's tokens and mask take the most.
        tokens = metadata.max_batch_size * metadata.max_input_tokens
        self.inputs = token_bytes([tokens, tokens])
        logits = logits_bytes(metadata)
        self.total = self.arenas + self.past.nothing_bytes + self.inputs + logits


def open_engine_session(
    model_dir: Path, config: ModelSizes, limits: EngineLimits, device: int
) -> TensorRTSequenceSession:
    """Opens both engines, and logs what serves; `ModelLoadError` says why they cannot serve."""
    with gpu_for(
        ENCODER_ENGINE, DECODER_ENGINE, instead="the model for the CPU", device=device
    ) as gpu:
        metadata = read_metadata(model_dir)
        pair = f"the pair of {ENCODER_ENGINE} and {DECODER_ENGINE}"
        check_engine(metadata, gpu, trt.__version__, config, limits, pair)
        encoder, decoder = (
            open_engine(model_dir, contract, metadata.graph_sha256)
            for contract in _contracts(metadata)
        )
        sizes = _BufferSizes(metadata)
        check_memory(
            gpu,
            [encoder, decoder],
            sizes.total,
            needs="the engines need",
            sizes=f"{metadata.max_batch_size} rows, texts of {metadata.max_input_tokens} tokens "
            f"and answers of {metadata.max_new_tokens} ({sizes.arenas} of them for keys and "
            "values)",
            remedy="lower the number of instances on a GPU, or publish the model with a smaller "
            "max_batch_size, max_input_tokens or max_new_tokens",
        )
        session = TensorRTSequenceSession(encoder, decoder, metadata)
        rebuilt = [each.contract.file for each in (encoder, decoder) if each.is_rebuilt]
        log_selected(
            gpu,
            device=device,
            precision=metadata.precision,
            max_batch_size=metadata.max_batch_size,
            max_input_tokens=metadata.max_input_tokens,
            max_new_tokens=metadata.max_new_tokens,
            cache_bytes=sizes.arenas,
            reason=f"built anew, because damaged: {', '.join(rebuilt)}"
            if rebuilt
            else f"the model directory holds {ENCODER_ENGINE} and {DECODER_ENGINE}",
        )
    return session


def _contracts(metadata: EngineMetadata) -> tuple[EngineContract, EngineContract]:
    graphs = (DECODER_GRAPH, ENCODER_GRAPH)
    cross = cache_tensors(_CROSS, metadata)
    encoder = EngineContract(
        file=ENCODER_ENGINE,
        graph=ENCODER_GRAPH,
        all_graphs=graphs,
        profiles=encoder_profiles(metadata),
        inputs=token_tensors(_ENCODER_INPUTS),
        outputs=cross,
    )
    decoder = EngineContract(
        file=DECODER_ENGINE,
        graph=DECODER_GRAPH,
        all_graphs=graphs,
        profiles=decoder_profiles(metadata),
        inputs=token_tensors(_DECODER_INPUTS) | cache_tensors(_PAST, metadata) | cross,
        outputs=logits_tensor(metadata) | cache_tensors(_PRESENT, metadata),
    )
    return encoder, decoder
