"""An engine file: opened, or rebuilt if it is damaged, and checked against its metadata."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

import tensorrt as trt

from containers.serving.logs import log_event
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.engine_builder import MessageLog, build_engine
from containers.tensorrt.compile.profiles import EngineBuildError, EngineLimits, profiles
from containers.tensorrt.engine_metadata import (
    DECODE_PROFILE,
    ENGINE_FILE,
    METADATA_FILE,
    PREFILL_PROFILE,
    REMEDY,
    TIMING_CACHE_FILE,
    EngineMetadata,
    graph_digest,
)
from containers.tensorrt.model_directory import GRAPH_FILE, external_data_files
from containers.tensorrt.stepping import LOGITS, STEP_INPUTS, cache_names

_logger = logging.getLogger(__name__)

# A dimension whose size is known only at run time.
_ANY: Final = -1

_TensorType: TypeAlias = tuple[trt.DataType, tuple[int, ...]]


@dataclass(frozen=True)
class Engine:
    """An engine and the objects that must live as long as it does.

    Attributes:
        cuda_engine: TensorRT's object.
        log: TensorRT's messages.
        is_rebuilt: whether the engine was built from the graph instead of read from the file.
    """

    cuda_engine: trt.ICudaEngine
    log: MessageLog
    runtime: trt.Runtime
    is_rebuilt: bool


def open_engine(model_dir: Path, metadata: EngineMetadata) -> Engine:
    """Opens model.engine, or builds an engine from the graph beside it if the file is damaged.

    Raises:
        ModelLoadError: the engine can be neither opened nor built, or is not an engine of a step
            graph of these sizes.
    """
    log = MessageLog()
    runtime = trt.Runtime(log)
    cuda_engine = runtime.deserialize_cuda_engine((model_dir / ENGINE_FILE).read_bytes())
    is_rebuilt = cuda_engine is None
    if is_rebuilt:
        cuda_engine = _rebuild(model_dir, metadata, runtime, _said(log))
    engine = Engine(cuda_engine, log, runtime, is_rebuilt)
    problems = _tensor_problems(cuda_engine, metadata) or _profile_problems(cuda_engine, metadata)
    if problems:
        raise ModelLoadError(
            f"{ENGINE_FILE} is not the engine of a step graph that {METADATA_FILE} describes: "
            f"{'; '.join(problems)}; {REMEDY}"
        )
    return engine


def create_context(engine: Engine, profile: int, stream_handle: int) -> trt.IExecutionContext:
    """Returns a context that runs steps of one profile; the stream must be synchronised next.

    Args:
        engine: an engine of a step graph.
        profile: number of the optimisation profile.
        stream_handle: CUDA stream on which the profile is selected.

    Raises:
        ModelLoadError: TensorRT refuses the context.
    """
    context = engine.cuda_engine.create_execution_context()
    if context is None or not context.set_optimization_profile_async(profile, stream_handle):
        raise ModelLoadError(
            f"TensorRT makes no execution context of {ENGINE_FILE} for profile {profile}: "
            f"{_said(engine.log)}"
        )
    return context


def check_logits(context: trt.IExecutionContext, metadata: EngineMetadata) -> None:
    """Checks that a context of the prefill profile returns the logits of one position.

    The memory for the logits has no room for more, and the engine reports the shape only for given
    inputs.

    Raises:
        ModelLoadError: the shape differs.
    """
    tokens = (metadata.max_batch_size, metadata.max_input_tokens)
    past = (metadata.max_batch_size, metadata.heads, 0, metadata.head_dim)
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(STEP_INPUTS, tokens)
    shapes |= dict.fromkeys(cache_names("past_key_values", metadata.layers), past)
    for name, shape in shapes.items():
        context.set_input_shape(name, shape)
    expected = (metadata.max_batch_size, 1, metadata.vocabulary_size)
    found = tuple(context.get_tensor_shape(LOGITS))
    if found != expected:
        raise ModelLoadError(
            f"{ENGINE_FILE} is not the engine of a step graph: for prompts of {list(tokens)} its "
            f"logits are {list(found)} instead of {list(expected)}; {REMEDY}"
        )


def _rebuild(
    model_dir: Path, metadata: EngineMetadata, runtime: trt.Runtime, reason: str
) -> trt.ICudaEngine:
    """Returns an engine built from the graph, in memory only, since the directory is read-only."""
    problem = f"{ENGINE_FILE} is damaged: TensorRT cannot open it ({reason})"
    graph = model_dir / GRAPH_FILE
    if not graph.is_file():
        raise ModelLoadError(f"{problem}, and there is no {GRAPH_FILE} to build it from; {REMEDY}")
    external_data = [model_dir / name for name in external_data_files(graph)]
    if graph_digest(graph, external_data) != metadata.graph_sha256:
        raise ModelLoadError(
            f"{problem}, and {GRAPH_FILE} is not the graph that it was built from; {REMEDY}"
        )
    log_event(
        _logger,
        logging.WARNING,
        "engine_rebuild_started",
        reason=f"{problem}; it is built anew from {GRAPH_FILE}, which takes minutes at every start",
    )
    timing_cache = model_dir / TIMING_CACHE_FILE
    limits = EngineLimits(
        max_batch_size=metadata.max_batch_size,
        max_input_tokens=metadata.max_input_tokens,
        max_new_tokens=metadata.max_new_tokens,
    )
    try:
        built = build_engine(
            graph,
            profiles(limits),
            timing_cache=timing_cache.read_bytes() if timing_cache.is_file() else b"",
        )
    except EngineBuildError as error:
        raise ModelLoadError(f"{problem}, and {error}") from error
    cuda_engine = runtime.deserialize_cuda_engine(built.plan)
    if cuda_engine is None:
        raise ModelLoadError(f"{problem}, and neither can it open one built from {GRAPH_FILE}")
    return cuda_engine


def _tensor_problems(engine: trt.ICudaEngine, metadata: EngineMetadata) -> list[str]:
    float_type = {"fp16": trt.DataType.HALF, "fp32": trt.DataType.FLOAT}[metadata.precision]
    tokens = (trt.DataType.INT64, (_ANY, _ANY))
    cache = (float_type, (_ANY, metadata.heads, _ANY, metadata.head_dim))
    inputs: dict[str, _TensorType] = dict.fromkeys(STEP_INPUTS, tokens)
    inputs |= dict.fromkeys(cache_names("past_key_values", metadata.layers), cache)
    outputs: dict[str, _TensorType] = {LOGITS: (float_type, (_ANY, 1, metadata.vocabulary_size))}
    outputs |= dict.fromkeys(cache_names("present", metadata.layers), cache)
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    problems = [
        *_mode_problems(engine, names, inputs, trt.TensorIOMode.INPUT, "input"),
        *_mode_problems(engine, names, outputs, trt.TensorIOMode.OUTPUT, "output"),
    ]
    return problems + [
        f"{name} is unknown" for name in names if name not in inputs and name not in outputs
    ]


def _mode_problems(
    engine: trt.ICudaEngine,
    names: Sequence[str],
    expected: Mapping[str, _TensorType],
    mode: trt.TensorIOMode,
    kind: str,
) -> list[str]:
    problems = []
    for name, (data_type, shape) in expected.items():
        if name not in names or engine.get_tensor_mode(name) != mode:
            problems.append(f"{kind} {name} is missing")
            continue
        if engine.get_tensor_location(name) != trt.TensorLocation.DEVICE:
            problems.append(f"{kind} {name} is read by the host")
        found_type, found = engine.get_tensor_dtype(name), tuple(engine.get_tensor_shape(name))
        fits = len(found) == len(shape) and all(
            size in (expectation, _ANY) or expectation == _ANY
            for size, expectation in zip(found, shape, strict=True)
        )
        if found_type != data_type or not fits:
            problems.append(
                f"{kind} {name} is {found_type.name} {list(found)} instead of "
                f"{data_type.name} {list(shape)}"
            )
    return problems


def _profile_problems(engine: trt.ICudaEngine, metadata: EngineMetadata) -> list[str]:
    if engine.num_optimization_profiles <= max(PREFILL_PROFILE, DECODE_PROFILE):
        return [f"it has {engine.num_optimization_profiles} optimisation profile instead of 2"]
    rows = (1, metadata.max_batch_size)
    prompt = (1, metadata.max_input_tokens)
    past = (1, metadata.max_past_tokens)
    wanted: list[tuple[int, str, tuple[tuple[int, int], ...]]] = [
        (PREFILL_PROFILE, "input_ids", (rows, prompt)),
        (PREFILL_PROFILE, "attention_mask", (rows, prompt)),
        (PREFILL_PROFILE, "position_ids", (rows, prompt)),
        (DECODE_PROFILE, "input_ids", (rows, (1, 1))),
        (DECODE_PROFILE, "attention_mask", (rows, (past[0] + 1, past[1] + 1))),
        (DECODE_PROFILE, "position_ids", (rows, (1, 1))),
    ]
    heads, width = (metadata.heads,) * 2, (metadata.head_dim,) * 2
    for name in cache_names("past_key_values", metadata.layers):
        wanted.append((PREFILL_PROFILE, name, (rows, heads, (0, 0), width)))
        wanted.append((DECODE_PROFILE, name, (rows, heads, past, width)))
    problems = []
    for profile, name, sizes in wanted:
        smallest, _, largest = engine.get_tensor_profile_shape(name, profile)
        found = list(zip(smallest, largest, strict=True))
        if any(
            low > least or high < most
            for (low, high), (least, most) in zip(found, sizes, strict=True)
        ):
            problems.append(
                f"profile {profile} takes {name} of {_ranges(found)} instead of {_ranges(sizes)}"
            )
    return problems


def _ranges(sizes: Sequence[tuple[int, int]]) -> str:
    return str([low if low == high else f"{low}..{high}" for low, high in sizes]).replace("'", "")


def _said(log: MessageLog) -> str:
    return "; ".join(dict.fromkeys(log.errors)) or "it gives no reason"
