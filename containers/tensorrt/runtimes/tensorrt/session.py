"""The steps of an engine on the GPU, and every check before the first step."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import tensorrt as trt

from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.profiles import profiles
from containers.tensorrt.engine_metadata import (
    ENGINE_FILE,
    EngineLimits,
    EngineMetadata,
    candidate_count,
    check_engine,
    read_metadata,
)
from containers.tensorrt.model_directory import GRAPH_FILE, ModelConfig
from containers.tensorrt.runtimes.tensorrt.cache import (
    ARENAS,
    CacheLayout,
    CacheMemory,
    DeviceCache,
)
from containers.tensorrt.runtimes.tensorrt.device_memory import Stream
from containers.tensorrt.runtimes.tensorrt.engine import (
    ANY,
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
    CandidateMemory,
    TokenMemory,
    candidate_bytes,
    logits_bytes,
    token_bytes,
)
from containers.tensorrt.settings import GenerationSettings
from containers.tensorrt.stepping import (
    CANDIDATE_LOGITS,
    CANDIDATE_TOKENS,
    STEP_INPUTS,
    TEMPERATURES,
    TOTAL_WEIGHTS,
    Logits,
    StepInputs,
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
        self._prefill_context, self._decode_context = create_contexts(engine, self._stream)
        check_logits(engine, self._prefill_context, metadata)
        self._caches = CacheMemory(sizes.layout, self._stream)
        self.select: Final = self._caches.select
        self.concatenate: Final = self._caches.concatenate
        self._past_names = cache_names("past_key_values", metadata.layers)
        self._present_names = cache_names("present", metadata.layers)
        self._nothing = sizes.layout.allocate_nothing()
        self._tokens = TokenMemory(sizes.inputs, self._stream)
        self._logits = CandidateMemory(metadata, self._stream)

    def step(
        self,
        inputs: StepInputs,
        temperatures: Sequence[float],
        cache: DeviceCache | None = None,
    ) -> tuple[Logits, DeviceCache]:
        """Runs the engine once, from the copy of its inputs to the copy of its results."""
        if cache is None:
            context, past_columns, past_addresses = self._prefill_context, 0, self._nothing
            target = self._caches.claim()
        else:
            past_arena = self._caches.take(cache)
            context, past_columns = self._decode_context, cache.columns
            past_addresses = self._caches.addresses(past_arena, past_columns)
            target = self._caches.claim(past_arena)
        rows, sequence = inputs.input_ids.shape
        columns = past_columns + sequence
        layout = self._caches.layout
        if rows > layout.max_rows or columns > layout.max_columns:
            raise ValueError(
                f"a step of {rows} rows and {columns} columns; the engine takes at most "
                f"{layout.max_rows} and {layout.max_columns}"
            )
        past_shape = (rows, layout.heads, past_columns, self._metadata.head_dim)
        weights = np.array(temperatures, np.float32).reshape(rows, 1, 1)
        self._tokens.bind(self._engine, context, inputs._asdict() | {TEMPERATURES: weights})
        past = zip(self._past_names, past_addresses, strict=True)
        self._engine.bind(context, past, past_shape)
        present_addresses = self._caches.addresses(target, columns)
        self._engine.bind(context, zip(self._present_names, present_addresses, strict=True))
        self._engine.bind(context, self._logits.addresses(rows).items())
        self._engine.accept(context.execute_async_v3(self._stream.handle), "the step")
        return self._logits.read(rows), self._caches.issue(target, rows, columns)


class _BufferSizes:
    def __init__(self, metadata: EngineMetadata) -> None:
        rows, columns = metadata.max_batch_size, metadata.max_past_tokens + 1
        self.layout = CacheLayout.of(metadata, columns)
        self.arenas = ARENAS * self.layout.arena_bytes
        # The last array has the temperatures.
        self.inputs = token_bytes([*[rows * columns] * len(STEP_INPUTS), rows])
        logits = logits_bytes(metadata) + candidate_bytes(metadata)
        self.total = self.arenas + self.layout.nothing_bytes + self.inputs + logits


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
    with gpu_for(ENGINE_FILE, instead=f"{GRAPH_FILE} without an engine") as gpu:
        metadata = read_metadata(model_dir)
        asked = EngineLimits(
            max_batch_size,
            settings.max_input_tokens or metadata.max_input_tokens,
            settings.max_new_tokens,
        )
        check_engine(metadata, gpu, trt.__version__, config, asked)
        longest = config.max_positions - 1
        if settings.max_input_tokens is None and metadata.max_input_tokens < longest:
            raise ModelLoadError(
                f"{ENGINE_FILE} takes prompts of at most {metadata.max_input_tokens} tokens, and "
                f"without SLIPWAY_MAX_INPUT_TOKENS the model's {longest} are allowed: set it to "
                f"{metadata.max_input_tokens} or less"
            )
        engine = open_engine(model_dir, _contract(metadata), metadata.graph_sha256)
        sizes = _BufferSizes(metadata)
        check_memory(
            gpu,
            [engine],
            sizes.total,
            needs=f"{ENGINE_FILE} needs",
            sizes=f"{metadata.max_batch_size} rows and {sizes.layout.max_columns} columns "
            f"({sizes.arenas} of them for keys and values)",
            remedy="or publish the model with a smaller max_batch_size, max_input_tokens or "
            "max_new_tokens",
        )
        session = TensorRTSession(engine, metadata)
        log_selected(
            gpu,
            precision=metadata.precision,
            max_batch_size=metadata.max_batch_size,
            max_input_tokens=metadata.max_input_tokens,
            max_new_tokens=metadata.max_new_tokens,
            candidates=engine.contract.candidates,
            cache_bytes=sizes.arenas,
            reason=f"{ENGINE_FILE} is damaged, and was built anew from {GRAPH_FILE}"
            if engine.is_rebuilt
            else f"the model directory holds {ENGINE_FILE}",
        )
    return session
