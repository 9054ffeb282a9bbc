"""The parts of a compile job's worker that every model family has.

Nothing here imports torch, so that a job that cannot succeed ends in seconds.
"""

import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NoReturn, TypeVar

from containers.jobs.checkpoint_files import CheckpointFiles
from containers.jobs.child import run_process, run_work
from containers.jobs.paths import JobPaths
from containers.jobs.report import CompileError, stage
from containers.serving.model_files import CONFIG_FILE
from containers.tensorrt.compile.gpu import checked_gpu
from containers.tensorrt.compile.job import Hyperparameters, Job
from containers.tensorrt.compile.profiles import Profile
from containers.tensorrt.engine_metadata import (
    TIMING_CACHE_FILE,
    EngineMetadata,
    Gpu,
    ModelSizes,
    graph_digest,
    write_metadata,
)
from containers.tensorrt.model_directory import (
    CHAT_TEMPLATE_FILE,
    GENERATION_CONFIG_FILE,
    GRAPH_FILE,
    TOKENIZER_CONFIG_FILE,
)

# Publishing reads this file, and does not publish it: the digest depends on the model alone.
ACCURACY_FILE: Final = "accuracy.json"

# Any: see `Job`.
AskedT = TypeVar("AskedT", bound=Any)
CheckpointT = TypeVar("CheckpointT", bound=CheckpointFiles)

_PACKAGES: Final = (
    "torch",
    "transformers",
    "onnx",
    "onnx_ir",
    "onnxscript",
    "onnxruntime",
    "safetensors",
)


def run_worker(
    prepare: Callable[[JobPaths], Job[AskedT, CheckpointT]],
    compile_checkpoint: Callable[[Job[AskedT, CheckpointT], Gpu | None, Path], None],
) -> NoReturn:
    """Runs the process that compiles into the scratch directory of its argument."""
    scratch, (paths, _) = Path(sys.argv[1]), JobPaths.read(os.environ)

    def work() -> None:
        job = prepare(paths)
        # Checked before the minutes that the other stages take.
        gpu = checked_gpu(job.hyperparameters.target)
        _import_packages()
        compile_checkpoint(job, gpu, scratch)

    run_process(lambda: run_work(work, scratch=scratch, output_dir=paths.output))


def _import_packages() -> None:
    with stage("import_packages") as fields:
        missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
        if missing:
            raise CompileError(
                f"compiling needs {', '.join(missing)}: run the job in the compiler image; for the "
                "embedded AWS, `make export` installs them"
            )
        # Imported here, so that the checks before it take no time to import torch.
        from containers.jobs.pretrained import quieten

        quieten()
        fields["versions"] = {name: importlib.metadata.version(name) for name in _PACKAGES}


# Any: a model of transformers.
def write_configs(checkpoint: CheckpointFiles, model: Any, scratch: Path) -> None:
    """Writes config.json, and generation_config.json of the checkpoint or of the model."""
    shutil.copyfile(checkpoint.directory / CONFIG_FILE, scratch / CONFIG_FILE)
    generation_config = checkpoint.directory / GENERATION_CONFIG_FILE
    if generation_config.is_file():
        shutil.copyfile(generation_config, scratch / GENERATION_CONFIG_FILE)
    else:
        model.generation_config.to_json_file(str(scratch / GENERATION_CONFIG_FILE))


# Any: the `Parity` of `containers.tensorrt.export`.
def export_graphs(
    scratch: Path, noun: str, export: Callable[[], None], verify: Callable[[], Any]
) -> list[Path]:
    """Writes graphs and compares them with their model; returns their files, sorted."""
    with stage(f"export_{noun}") as fields:
        others = set(scratch.iterdir())
        export()
        graph_files = sorted(set(scratch.iterdir()) - others)
        fields["bytes"] = _sizes(graph_files)
    with stage(f"verify_{noun}") as fields:
        parity = verify()
        fields["tokens_compared"] = parity.tokens
        fields["largest_logit_difference"] = parity.largest_logit_difference
    return graph_files


def quantize(scratch: Path, measure: Callable[[], Mapping[str, float]]) -> None:
    """Quantises the weights of a graph to int8, and writes how exact it then is."""
    from containers.tensorrt.export.int8 import quantize_graph

    with stage("quantize_graph") as fields:
        fields["products"] = quantize_graph(scratch / GRAPH_FILE)
        fields["bytes"] = _sizes(scratch.glob(f"{GRAPH_FILE}*"))
    with stage("measure_accuracy") as fields:
        fields |= measure()
        (scratch / ACCURACY_FILE).write_text(json.dumps(fields) + "\n", encoding="utf-8")


def copy_chat_files(checkpoint_directory: Path, scratch: Path) -> None:
    """Copies the files that may have a chat template, as far as a checkpoint has them."""
    for name in (TOKENIZER_CONFIG_FILE, CHAT_TEMPLATE_FILE):
        if (checkpoint_directory / name).is_file():
            shutil.copyfile(checkpoint_directory / name, scratch / name)


def build_engines(
    scratch: Path,
    engines: Mapping[str, tuple[str, Sequence[Profile]]],
    graph_files: Sequence[Path],
    asked: Hyperparameters,
    config: ModelSizes,
    gpu: Gpu,
    *,
    candidates: int = 0,
) -> None:
    """Builds engines, and writes them with engine.json and the builder's timing cache.

    `engines` has, for each engine's file, its graph's file and its profiles; `graph_files` the
    graphs and their external data, which are removed afterwards unless the job keeps them.
    """
    version = build_plans(scratch, engines, candidates=candidates)
    metadata = EngineMetadata.of(
        asked,
        config,
        tensorrt_version=version,
        compute_capability=gpu.compute_capability,
        gpu_name=gpu.name,
        graph_sha256=graph_digest(graph_files[0], graph_files[1:]),
        precision=asked.precision,
    )
    write_metadata(scratch, metadata)
    if not asked.keep_graph:
        for path in graph_files:
            path.unlink()


def build_plans(
    scratch: Path, engines: Mapping[str, tuple[str, Sequence[Profile]]], *, candidates: int = 0
) -> str:
    """Builds engines, and writes them with the timing cache; returns the version of TensorRT.

    An `EngineBuildError` says that TensorRT refuses a graph, or cannot build an engine.
    """
    import tensorrt

    from containers.tensorrt.compile.engine_builder import build_engine

    timing_cache = b""
    for name, (graph, profiles) in engines.items():
        with stage("build_engine", engine=name) as fields:
            # Layers of several graphs that are alike are timed once.
            built = build_engine(
                scratch / graph, profiles, candidates=candidates, timing_cache=timing_cache
            )
            (scratch / name).write_bytes(built.plan)
            timing_cache = built.timing_cache or b""
            fields["engine_bytes"] = built.plan.nbytes
            fields["tensorrt_version"] = tensorrt.__version__
    if timing_cache:
        (scratch / TIMING_CACHE_FILE).write_bytes(timing_cache)
    return str(tensorrt.__version__)


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in paths}
