"""The steps of an engine on the GPU, and every check before the first step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tensorrt as trt

from containers.serving.logs import log_info
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.profiles import DECODE_PROFILE, PREFILL_PROFILE, profiles
from containers.tensorrt.engine_metadata import (
    ENGINE_FILE,
    EngineMetadata,
    Gpu,
    candidate_count,
    check_engine,
    read_metadata,
)
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig
from containers.tensorrt.runtimes.tensorrt.cache import (
    ARENAS,
    Arena,
    CacheLayout,
    CacheMemory,
    DeviceCache,
)
from containers.tensorrt.runtimes.tensorrt.device_memory import (
    ALIGNMENT_BYTES,
    DeviceError,
    Stream,
    allocate,
    free_bytes,
    use_gpu,
)
from containers.tensorrt.runtimes.tensorrt.engine import (
    ANY,
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
    CandidateMemory,
    LogitsMemory,
    TokenMemory,
    candidate_bytes,
    token_bytes,
)
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import (
    CANDIDATE_LOGITS,
    CANDIDATE_TOKENS,
    STEP_INPUTS,
    TEMPERATURES,
    TOTAL_WEIGHTS,
    Int64Array,
    Logits,
    cache_names,
)


class TensorRTSession:
    """A `StepSession` on the GPU.

    All memory is allocated here, for the largest steps of the engine.
    """

    def __init__(self, engine: Engine, metadata: EngineMetadata) -> None:
        sizes = _BufferSizes(metadata)
        self._engine = engine
        self._metadata = metadata
        self._stream = Stream()
        # One context per profile, since a context that changes its profile loses its shapes.
        self._prefill_context, self._decode_context = (
            create_context(engine, profile, self._stream.handle)
            for profile in (PREFILL_PROFILE, DECODE_PROFILE)
        )
        self._stream.synchronize()
        check_logits(engine, self._prefill_context, metadata)
        self._caches = CacheMemory(sizes.layout, self._stream)
        self.select: Final = self._caches.select
        self.concatenate: Final = self._caches.concatenate
        self._past_names = cache_names("past_key_values", metadata.layers)
        self._present_names = cache_names("present", metadata.layers)
        # Even an input without columns needs an address, and each input its own.
        nothing = allocate(sizes.nothing)
        self._nothing = [nothing + i * ALIGNMENT_BYTES for i in range(len(self._past_names))]
        self._tokens = TokenMemory(sizes.inputs, self._stream)
        logits = LogitsMemory(
            metadata.max_batch_size, metadata.vocabulary_size, metadata.precision, self._stream
        )
        self._logits = CandidateMemory(
            metadata.max_batch_size, metadata.vocabulary_size, logits, self._stream
        )

    def prefill(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        temperatures: Sequence[float],
    ) -> tuple[Logits, DeviceCache]:
        return self._run(
            self._prefill_context,
            (input_ids, attention_mask, position_ids),
            temperatures,
            past_columns=0,
            past_addresses=self._nothing,
            target=self._caches.claim(),
        )

    def step(
        self,
        input_ids: Int64Array,
        attention_mask: Int64Array,
        position_ids: Int64Array,
        cache: DeviceCache,
        temperatures: Sequence[float],
    ) -> tuple[Logits, DeviceCache]:
        past = self._caches.take(cache)
        return self._run(
            self._decode_context,
            (input_ids, attention_mask, position_ids),
            temperatures,
            past_columns=cache.columns,
            past_addresses=self._caches.addresses(past, cache.columns),
            target=self._caches.claim(past),
        )

    def _run(
        self,
        context: trt.IExecutionContext,
        tokens: tuple[Int64Array, Int64Array, Int64Array],
        temperatures: Sequence[float],
        *,
        past_columns: int,
        past_addresses: Sequence[int],
        target: Arena,
    ) -> tuple[Logits, DeviceCache]:
        """Runs the engine once, from the copy of its inputs to the copy of its results."""
        rows, sequence = tokens[0].shape
        columns = past_columns + sequence
        layout = self._caches.layout
        if rows > layout.max_rows or columns > layout.max_columns:
            raise ValueError(
                f"a step of {rows} rows and {columns} columns; the engine takes at most "
                f"{layout.max_rows} and {layout.max_columns}"
            )
        past_shape = (rows, layout.heads, past_columns, self._metadata.head_dim)
        accept = self._engine.accept
        inputs: dict[str, npt.NDArray[Any]] = dict(zip(STEP_INPUTS, tokens, strict=True))
        inputs[TEMPERATURES] = np.array(temperatures, np.float32).reshape(rows, 1, 1)
        self._tokens.bind(self._engine, context, inputs)
        for name, address in zip(self._past_names, past_addresses, strict=True):
            accept(context.set_input_shape(name, past_shape), name)
            accept(context.set_tensor_address(name, address), name)
        present_addresses = self._caches.addresses(target, columns)
        for name, address in zip(self._present_names, present_addresses, strict=True):
            accept(context.set_tensor_address(name, address), name)
        self._logits.bind(self._engine, context, rows)
        accept(context.execute_async_v3(self._stream.handle), "the step")
        return self._logits.read(rows), self._caches.issue(target, rows, columns)


class _BufferSizes:
    def __init__(self, metadata: EngineMetadata) -> None:
        columns = metadata.max_past_tokens + 1
        itemsize = FLOAT_TYPES[metadata.precision].itemsize
        self.layout = CacheLayout(
            tensors=2 * metadata.layers,
            heads=metadata.heads,
            column_bytes=metadata.head_dim * itemsize,
            max_rows=metadata.max_batch_size,
            max_columns=columns,
        )
        self.arenas = ARENAS * self.layout.arena_bytes
        self.nothing = self.layout.tensors * ALIGNMENT_BYTES
        rows = metadata.max_batch_size
        # The last array has the temperatures.
        self.inputs = token_bytes([*[rows * columns] * len(STEP_INPUTS), rows])
        count = candidate_count(metadata.vocabulary_size)
        self.logits = rows * metadata.vocabulary_size * itemsize + candidate_bytes(rows, count)
        self.total = self.arenas + self.nothing + self.inputs + self.logits


def _contract(metadata: EngineMetadata) -> EngineContract:
    count = candidate_count(metadata.vocabulary_size)
    return EngineContract(
        file=ENGINE_FILE,
        graph=GRAPH_FILE,
        all_graphs=(GRAPH_FILE,),
        profiles=profiles(metadata),
        inputs=token_tensors(STEP_INPUTS)
        | cache_tensors("past_key_values", metadata)
        | {TEMPERATURES: (trt.DataType.FLOAT, (ANY, 1, 1))},
        outputs=logits_tensor(metadata)
        | cache_tensors("present", metadata)
        | {
            CANDIDATE_TOKENS: (trt.DataType.INT32, (ANY, 1, count)),
            CANDIDATE_LOGITS: (trt.DataType.FLOAT, (ANY, 1, count)),
            TOTAL_WEIGHTS: (trt.DataType.FLOAT, (ANY, 1, 1)),
        },
        candidates=count,
    )


def open_engine_session(
    model_dir: Path, config: ModelConfig, settings: GenerationSettings, *, max_batch_size: int
) -> TensorRTSession:
    """Opens model.engine, and logs what serves; a `ModelLoadError` says why it cannot."""
    try:
        gpu = use_gpu()
    except DeviceError as error:
        raise ModelLoadError(
            f"{ENGINE_FILE} needs a GPU, and CUDA finds none that it can use: {error}; deploy on "
            f"an instance type with the GPU that it was built for, or publish {GRAPH_FILE} without "
            "an engine"
        ) from error
    metadata = read_metadata(model_dir)
    check_engine(
        metadata,
        tensorrt_version=trt.__version__,
        compute_capability=gpu.compute_capability,
        config=config,
        max_batch_size=max_batch_size,
        max_input_tokens=settings.max_input_tokens,
        max_new_tokens=settings.max_new_tokens,
    )
    longest = config.max_positions - 1
    if settings.max_input_tokens is None and metadata.max_input_tokens < longest:
        raise ModelLoadError(
            f"{ENGINE_FILE} takes prompts of at most {metadata.max_input_tokens} tokens, and "
            f"without SLIPWAY_MAX_INPUT_TOKENS the model's {longest} are allowed: set it to "
            f"{metadata.max_input_tokens} or less"
        )
    try:
        engine = open_engine(model_dir, _contract(metadata), metadata.graph_sha256)
        sizes = _BufferSizes(metadata)
        _check_memory(engine, metadata, sizes, gpu)
        session = TensorRTSession(engine, metadata)
        free = free_bytes()
    except DeviceError as error:
        raise ModelLoadError(f"{ENGINE_FILE} cannot be loaded onto {gpu.name}: {error}") from error
    log_info(
        "backend_selected",
        backend="tensorrt",
        version=trt.__version__,
        gpu=gpu.name,
        compute_capability=gpu.compute_capability,
        precision=metadata.precision,
        max_batch_size=metadata.max_batch_size,
        max_input_tokens=metadata.max_input_tokens,
        max_new_tokens=metadata.max_new_tokens,
        candidates=engine.contract.candidates,
        cache_bytes=sizes.arenas,
        free_gpu_bytes=free,
        reason=f"{ENGINE_FILE} is damaged, and was built anew from {GRAPH_FILE}"
        if engine.is_rebuilt
        else f"the model directory holds {ENGINE_FILE}",
    )
    return session


def _check_memory(engine: Engine, metadata: EngineMetadata, sizes: _BufferSizes, gpu: Gpu) -> None:
    # Each context has its own memory for activations.
    contexts = 2 * engine.cuda_engine.device_memory_size_v2
    needed, free = sizes.total + contexts, free_bytes()
    if needed > free:
        raise ModelLoadError(
            f"{ENGINE_FILE} needs {needed} more bytes of GPU memory for batches of "
            f"{metadata.max_batch_size} rows and {sizes.layout.max_columns} columns "
            f"({sizes.arenas} of them for keys and values), and {gpu.name} has {free} free: take "
            "an instance type with more, or publish the model with a smaller max_batch_size, "
            "max_input_tokens or max_new_tokens"
        )
