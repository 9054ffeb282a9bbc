"""An engine file: opened, or rebuilt if it is damaged, and checked against its metadata.

It keeps to Python 3.10, as all modules of this package do.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

import tensorrt as trt

from containers.serving.logs import log_info, log_warning
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.engine_builder import MessageLog, build_engine
from containers.tensorrt.compile.profiles import EngineBuildError, Profile
from containers.tensorrt.engine_metadata import (
    METADATA_FILE,
    REMEDY,
    TIMING_CACHE_FILE,
    EngineMetadata,
    Gpu,
    graph_digest,
)
from containers.tensorrt.model_directory import external_data_files
from containers.tensorrt.runtimes.tensorrt.device_memory import (
    DeviceError,
    Stream,
    free_bytes,
    use_gpu,
)
from containers.tensorrt.stepping import LOGITS, cache_names

# A dimension whose size is known only at run time.
ANY: Final = -1
TYPES: Final = {"fp16": trt.DataType.HALF, "fp32": trt.DataType.FLOAT}

TensorType: TypeAlias = tuple[trt.DataType, tuple[int, ...]]


@dataclass(frozen=True)
class EngineContract:
    """An engine's file, and everything about the engine that a session relies on."""

    file: str
    graph: str  # the file of its graph
    all_graphs: Sequence[str]  # the files that the metadata's digest covers
    profiles: Sequence[Profile]  # in the order of their numbers
    inputs: Mapping[str, TensorType]  # -1 in a shape for any size
    outputs: Mapping[str, TensorType]
    candidates: int = 0  # likeliest tokens that the engine finds in each row
    description: str = METADATA_FILE  # the file that describes the engine

    @property
    def kind(self) -> str:
        return self.profiles[0].graph

    def largest_inputs(self, profile: int) -> dict[str, tuple[int, ...]]:
        return {name: self.shapes(profile, name)[-1] for name in self.inputs}

    def shapes(self, profile: int, name: str) -> list[tuple[int, ...]]:
        return self.profiles[profile].of_input(name, self.inputs[name][1])


@dataclass(frozen=True)
class Engine:
    """An engine and the objects that must live as long as it does."""

    contract: EngineContract
    cuda_engine: trt.ICudaEngine
    log: MessageLog
    runtime: trt.Runtime
    is_rebuilt: bool  # from the graph, instead of read from the file

    def accept(self, accepted: bool, what: str) -> None:
        if not accepted:
            said = self.log.errors[-1:] or ["it gives no reason"]
            raise RuntimeError(f"TensorRT refuses {what}: {said[0]}")

    def bind(
        self,
        context: trt.IExecutionContext,
        addresses: Iterable[tuple[str, int]],
        shape: tuple[int, ...] | None = None,
    ) -> None:
        """Sets the address of each tensor, and the shape of inputs."""
        for name, address in addresses:
            if shape is not None:
                self.accept(context.set_input_shape(name, shape), name)
            self.accept(context.set_tensor_address(name, address), name)


def token_tensors(names: Sequence[str]) -> dict[str, TensorType]:
    return dict.fromkeys(names, (trt.DataType.INT64, (ANY, ANY)))


def cache_tensors(prefix: str, metadata: EngineMetadata) -> dict[str, TensorType]:
    shape = (ANY, metadata.heads, ANY, metadata.head_dim)
    names = cache_names(prefix, metadata.layers)
    return dict.fromkeys(names, (TYPES[metadata.precision], shape))


def logits_tensor(metadata: EngineMetadata) -> dict[str, TensorType]:
    return {LOGITS: (TYPES[metadata.precision], (ANY, 1, metadata.vocabulary_size))}


def open_engine(
    model_dir: Path,
    contract: EngineContract,
    graph_sha256: str | None,
) -> Engine:
    """Opens an engine, or builds it from the graph beside it if the file is damaged.

    Without `graph_sha256` no graph is kept. A `ModelLoadError` says why the engine can be neither
    opened nor built, or how it differs from the contract.
    """
    log = MessageLog()
    runtime = trt.Runtime(log)
    cuda_engine = runtime.deserialize_cuda_engine((model_dir / contract.file).read_bytes())
    is_rebuilt = cuda_engine is None
    if is_rebuilt:
        cuda_engine = _rebuild(model_dir, contract, graph_sha256, runtime, log.said)
    engine = Engine(contract, cuda_engine, log, runtime, is_rebuilt)
    problems = _tensor_problems(cuda_engine, contract) or _profile_problems(cuda_engine, contract)
    if problems:
        raise ModelLoadError(
            f"{contract.file} is not the engine of {contract.kind} that {contract.description} "
            f"describes: {'; '.join(problems)}; {REMEDY}"
        )
    return engine


def create_contexts(engine: Engine, stream: Stream) -> list[trt.IExecutionContext]:
    """Returns a context for each profile: one that changes its profile loses its shapes."""
    contexts = []
    for profile in range(len(engine.contract.profiles)):
        context = engine.cuda_engine.create_execution_context()
        if context is None or not context.set_optimization_profile_async(profile, stream.handle):
            raise ModelLoadError(
                f"TensorRT makes no execution context of {engine.contract.file} for profile "
                f"{profile}: {engine.log.said}"
            )
        contexts.append(context)
    stream.synchronize()
    return contexts


@contextlib.contextmanager
def gpu_for(*files: str, instead: str, device: int = 0) -> Iterator[Gpu]:
    """Makes a GPU of the machine the current one, on which engine files are then opened.

    A `ModelLoadError` says that there is none, and to publish what serves without one `instead`, or
    that CUDA refuses a call.
    """
    try:
        gpu = use_gpu(device)
    except DeviceError as error:
        raise ModelLoadError(
            f"{files[0]} needs a GPU, and CUDA finds none that it can use: {error}; deploy on an "
            f"instance type with the GPU that it was built for, or publish {instead}"
        ) from error
    try:
        yield gpu
    except DeviceError as error:
        raise ModelLoadError(
            f"{' and '.join(files)} cannot be loaded onto {gpu.name}: {error}"
        ) from error


def check_memory(
    gpu: Gpu, engines: Sequence[Engine], buffers: int, *, needs: str, sizes: str, remedy: str
) -> None:
    """Checks that engines' contexts and buffers, in bytes, fit the GPU; the texts are messages'."""
    # Each context, one for a profile, has its own memory for activations.
    needed = buffers + sum(
        len(each.contract.profiles) * each.cuda_engine.device_memory_size_v2 for each in engines
    )
    free = free_bytes()
    if needed > free:
        raise ModelLoadError(
            f"{needs} {needed} more bytes of GPU memory for batches of {sizes}, and {gpu.name} has "
            f"{free} free: take an instance type with more, {remedy}"
        )


# Any: fields of a log's line.
def log_selected(gpu: Gpu, *, reason: str, **about: Any) -> None:
    log_info(
        "backend_selected",
        backend="tensorrt",
        version=trt.__version__,
        gpu=gpu.name,
        compute_capability=gpu.compute_capability,
        **about,
        free_gpu_bytes=free_bytes(),
        reason=reason,
    )


def check_logits(engine: Engine, context: trt.IExecutionContext, metadata: EngineMetadata) -> None:
    """Checks that a context of the first profile returns the logits of one position.

    The memory for the logits has no room for more, and the engine reports the shape only for given
    inputs.
    """
    shapes = engine.contract.largest_inputs(0)
    for name, shape in shapes.items():
        context.set_input_shape(name, shape)
    expected = (metadata.max_batch_size, 1, metadata.vocabulary_size)
    found = tuple(context.get_tensor_shape(LOGITS))
    if found != expected:
        raise ModelLoadError(
            f"{engine.contract.file} is not the engine of {engine.contract.kind}: for prompts of "
            f"{list(shapes['input_ids'])} its logits are {list(found)} instead of "
            f"{list(expected)}; {REMEDY}"
        )


def _rebuild(
    model_dir: Path,
    contract: EngineContract,
    graph_sha256: str | None,
    runtime: trt.Runtime,
    reason: str,
) -> trt.ICudaEngine:
    """Returns an engine built from the graph, in memory only, since the directory is read-only."""
    problem = f"{contract.file} is damaged: TensorRT cannot open it ({reason})"
    if graph_sha256 is None:
        raise ModelLoadError(f"{problem}; {REMEDY}")
    graph = model_dir / contract.graph
    if not graph.is_file():
        raise ModelLoadError(
            f"{problem}, and there is no {contract.graph} to build it from; {REMEDY}"
        )
    if _digest(model_dir, contract.all_graphs) != graph_sha256:
        raise ModelLoadError(
            f"{problem}, and {contract.graph} is not the graph that it was built from; {REMEDY}"
        )
    log_warning(
        "engine_rebuild_started",
        reason=f"{problem}; it is built anew from {contract.graph}, which takes minutes at every "
        "start",
    )
    timing_cache = model_dir / TIMING_CACHE_FILE
    try:
        built = build_engine(
            graph,
            contract.profiles,
            candidates=contract.candidates,
            timing_cache=timing_cache.read_bytes() if timing_cache.is_file() else b"",
        )
    except EngineBuildError as error:
        raise ModelLoadError(f"{problem}, and {error}") from error
    cuda_engine = runtime.deserialize_cuda_engine(built.plan)
    if cuda_engine is None:
        raise ModelLoadError(f"{problem}, and neither can it open one built from {contract.graph}")
    return cuda_engine


def _digest(model_dir: Path, graphs: Sequence[str]) -> str | None:
    """Returns the digest of graphs and their external data; None if a file is missing."""
    files = [model_dir / graph for graph in graphs]
    if not all(path.is_file() for path in files):
        return None
    names = {name for graph in files for name in external_data_files(graph)}
    files += [model_dir / name for name in sorted(names)]
    return graph_digest(files[0], files[1:]) if all(path.is_file() for path in files) else None


def _tensor_problems(engine: trt.ICudaEngine, contract: EngineContract) -> list[str]:
    names = [engine.get_tensor_name(index) for index in range(engine.num_io_tensors)]
    problems = [
        *_mode_problems(engine, names, contract.inputs, trt.TensorIOMode.INPUT, "input"),
        *_mode_problems(engine, names, contract.outputs, trt.TensorIOMode.OUTPUT, "output"),
    ]
    known = {*contract.inputs, *contract.outputs}
    return problems + [f"{name} is unknown" for name in names if name not in known]


def _mode_problems(
    engine: trt.ICudaEngine,
    names: Sequence[str],
    expected: Mapping[str, TensorType],
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
            size in (expectation, ANY) or expectation == ANY
            for size, expectation in zip(found, shape, strict=True)
        )
        if found_type != data_type or not fits:
            problems.append(
                f"{kind} {name} is {found_type.name} {list(found)} instead of "
                f"{data_type.name} {list(shape)}"
            )
    return problems


def _profile_problems(engine: trt.ICudaEngine, contract: EngineContract) -> list[str]:
    if engine.num_optimization_profiles < len(contract.profiles):
        return [
            f"it has {engine.num_optimization_profiles} optimisation profile instead of "
            f"{len(contract.profiles)}"
        ]
    problems = []
    for profile in range(len(contract.profiles)):
        for name in contract.inputs:
            least, _, most = contract.shapes(profile, name)
            smallest, _, largest = engine.get_tensor_profile_shape(name, profile)
            wanted = list(zip(least, most, strict=True))
            found = list(zip(smallest, largest, strict=True))
            if any(
                low > first or high < last
                for (low, high), (first, last) in zip(found, wanted, strict=True)
            ):
                problems.append(
                    f"profile {profile} takes {name} of {_ranges(found)} instead of "
                    f"{_ranges(wanted)}"
                )
    return problems


def _ranges(sizes: Sequence[tuple[int, int]]) -> str:
    return str([low if low == high else f"{low}..{high}" for low, high in sizes]).replace("'", "")
