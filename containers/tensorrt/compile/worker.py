"""The child process of a compile job: everything that needs torch, onnx or TensorRT.

It writes a whole model directory into the scratch directory, and elsewhere only the reason of a
failure.
"""

import gc
import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from containers.jobs.child import run_process, run_work
from containers.jobs.paths import JobPaths
from containers.jobs.report import CompileError, stage
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.tensorrt.compile.checkpoint import Job, prepare, tokenizer_problem
from containers.tensorrt.compile.gpu import Gpu, find_gpu
from containers.tensorrt.compile.job import CPU_TARGET
from containers.tensorrt.engine_metadata import (
    ENGINE_FILE,
    TIMING_CACHE_FILE,
    EngineMetadata,
    graph_digest,
    write_metadata,
)
from containers.tensorrt.model_directory import (
    GENERATION_CONFIG_FILE,
    GRAPH_FILE,
)

_PACKAGES: Final = (
    "torch",
    "transformers",
    "onnx",
    "onnx_ir",
    "onnxscript",
    "onnxruntime",
    "safetensors",
)


def main(scratch: Path, environ: Mapping[str, str]) -> int:
    """Compiles into `scratch`; returns the exit code of the process."""
    paths, _ = JobPaths.read(environ)
    return run_work(lambda: _compile(paths, scratch), scratch=scratch, output_dir=paths.output)


def _compile(paths: JobPaths, scratch: Path) -> None:
    job = prepare(paths)
    # Checked before the minutes that the other stages take.
    gpu = checked_gpu(job.hyperparameters.target)
    with stage("import_packages") as fields:
        _require_packages()
        # Imported here, so that the checks before it take no time to import torch.
        from containers.jobs.pretrained import quieten

        quieten()
        fields["versions"] = {name: importlib.metadata.version(name) for name in _PACKAGES}
    compile_checkpoint(job, gpu, scratch)


def compile_checkpoint(job: Job, gpu: Gpu | None, scratch: Path) -> None:
    """Writes the model directory of a checkpoint.

    Args:
        job: the checkpoint, the target and the limits.
        gpu: this machine's GPU; None builds no engine.
        scratch: an empty directory.

    Raises:
        CompileError: the checkpoint or the machine is not suitable.
    """
    from containers.tensorrt.compile import model as torch_model
    from containers.tensorrt.export import ExportError, export_gpt2_step

    asked, checkpoint = job.hyperparameters, job.checkpoint
    with stage("load_checkpoint") as fields:
        model = torch_model.load_model(checkpoint, asked.precision)
        fields["checkpoint_bytes"] = checkpoint.weight_bytes
        fields["parameters"] = sum(weights.numel() for weights in model.parameters())
    with stage("write_configs"):
        shutil.copyfile(checkpoint.directory / CONFIG_FILE, scratch / CONFIG_FILE)
        generation_config = checkpoint.directory / GENERATION_CONFIG_FILE
        if generation_config.is_file():
            shutil.copyfile(generation_config, scratch / GENERATION_CONFIG_FILE)
        else:
            model.generation_config.to_json_file(str(scratch / GENERATION_CONFIG_FILE))
        tokenizer = scratch / TOKENIZER_FILE
        if (checkpoint.directory / TOKENIZER_FILE).is_file():
            shutil.copyfile(checkpoint.directory / TOKENIZER_FILE, tokenizer)
        else:
            torch_model.write_tokenizer(checkpoint.directory, tokenizer)
            problem = tokenizer_problem(tokenizer, checkpoint.config)
            if problem is not None:
                raise CompileError(problem)
    graph = scratch / GRAPH_FILE
    try:
        with stage("export_graph") as fields:
            others = set(scratch.iterdir())
            export_gpt2_step(model, graph, precision=asked.precision)
            graph_files = sorted(set(scratch.iterdir()) - others)
            fields["bytes"] = _sizes(graph_files)
        with stage("verify_graph") as fields:
            parity = torch_model.verify(graph, model, checkpoint.config)
            fields["tokens_compared"] = parity.tokens
            fields["largest_logit_difference"] = parity.largest_logit_difference
    except ExportError as error:
        raise CompileError(str(error)) from error
    if gpu is not None:
        # The builder holds all weights of the engine, and the model's copy is not needed any more.
        del model
        gc.collect()
        _build_engine(job, gpu, scratch, graph_files)


def _build_engine(job: Job, gpu: Gpu, scratch: Path, graph_files: list[Path]) -> None:
    import tensorrt

    from containers.tensorrt.compile.engine_builder import (
        EngineBuildError,
        EngineLimits,
        build_engine,
    )

    asked, config = job.hyperparameters, job.checkpoint.config
    graph = scratch / GRAPH_FILE
    with stage("build_engine") as fields:
        limits = EngineLimits(
            max_batch_size=asked.max_batch_size,
            max_input_tokens=asked.max_input_tokens,
            max_new_tokens=asked.max_new_tokens,
        )
        try:
            built = build_engine(graph, limits)
        except EngineBuildError as error:
            raise CompileError(str(error)) from error
        (scratch / ENGINE_FILE).write_bytes(built.plan)
        if built.timing_cache is not None:
            (scratch / TIMING_CACHE_FILE).write_bytes(built.timing_cache)
        metadata = EngineMetadata(
            tensorrt_version=tensorrt.__version__,
            compute_capability=gpu.compute_capability,
            gpu_name=gpu.name,
            graph_sha256=graph_digest(graph, [path for path in graph_files if path != graph]),
            precision=asked.precision,
            max_batch_size=asked.max_batch_size,
            max_input_tokens=asked.max_input_tokens,
            max_new_tokens=asked.max_new_tokens,
            layers=config.layers,
            heads=config.heads,
            head_dim=config.head_dim,
            vocabulary_size=config.vocabulary_size,
        )
        write_metadata(scratch, metadata)
        fields["engine_bytes"] = built.plan.nbytes
        fields["tensorrt_version"] = metadata.tensorrt_version
    if not asked.keep_graph:
        for path in graph_files:
            path.unlink()


def checked_gpu(target: str) -> Gpu | None:
    """Returns this machine's GPU, or None for a target that needs no GPU.

    Raises:
        CompileError: an engine for `target` cannot be built here.
    """
    if target == CPU_TARGET:
        return None
    if importlib.util.find_spec("tensorrt") is None:
        raise CompileError(
            f"target {target} needs TensorRT, which is not installed here: run the job in the "
            f"compiler image, or set target to {CPU_TARGET}"
        )
    gpu = find_gpu()
    if gpu.compute_capability != target:
        raise CompileError(
            f"target is {target}, and this machine's GPU is {gpu.compute_capability} ({gpu.name}): "
            "an engine runs only on the kind of GPU that it was built on; run the job on an "
            f"instance with {target}"
        )
    return gpu


def _require_packages() -> None:
    missing = [name for name in _PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise CompileError(
            f"compiling needs {', '.join(missing)}: run the job in the compiler image; for the "
            "embedded AWS, `make export` installs them"
        )


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in paths}


if __name__ == "__main__":
    run_process(lambda: main(Path(sys.argv[1]), os.environ))
