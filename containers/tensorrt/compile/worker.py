"""The child process of a compile job: everything that takes torch, onnx or TensorRT.

It writes a whole model directory into the scratch directory it is given, and nothing anywhere else
but the reason of a failure.
"""

import errno
import gc
import importlib.metadata
import importlib.util
import logging
import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from containers.serving.logs import configure_logging
from containers.tensorrt.compile.checkpoint import tokenizer_problem
from containers.tensorrt.compile.gpu import Gpu, find_gpu
from containers.tensorrt.compile.job import CPU_TARGET, JobPaths
from containers.tensorrt.compile.preparation import Job, prepare
from containers.tensorrt.compile.report import (
    EXIT_OK,
    EXIT_OPERATOR_PROBLEM,
    EXIT_OWN_FAULT,
    CompileError,
    bug_reason,
    report_failure,
    stage,
)
from containers.tensorrt.engine_metadata import (
    ENGINE_FILE,
    TIMING_CACHE_FILE,
    EngineMetadata,
    graph_digest,
    write_metadata,
)
from containers.tensorrt.model_directory import (
    CONFIG_FILE,
    GENERATION_CONFIG_FILE,
    GRAPH_FILE,
    TOKENIZER_FILE,
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
_FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def main(scratch: Path, environ: Mapping[str, str]) -> int:
    """Compiles into `scratch`; returns the exit code of the process."""
    configure_logging("INFO", sys.stdout)
    # The exporter logs every step of every pass at INFO.
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("containers").setLevel(logging.INFO)
    paths, _ = JobPaths.read(environ)
    try:
        job = prepare(paths)
        # Before the minutes that the rest takes.
        gpu = checked_gpu(job.hyperparameters.target)
        with stage("import_packages") as fields:
            _require_packages()
            # Here and not above: the checks before come without them, and so at once.
            from containers.tensorrt.compile.model import quieten

            quieten()
            fields["versions"] = {name: importlib.metadata.version(name) for name in _PACKAGES}
        compile_checkpoint(job, gpu, scratch)
    except CompileError as error:
        report_failure(paths.output, str(error))
        return EXIT_OPERATOR_PROBLEM
    except Exception as error:
        reason = _resource_reason(error, scratch)
        if reason is None:
            report_failure(paths.output, bug_reason(error), error=error)
            return EXIT_OWN_FAULT
        report_failure(paths.output, reason)
        return EXIT_OPERATOR_PROBLEM
    return EXIT_OK


def compile_checkpoint(job: Job, gpu: Gpu | None, scratch: Path) -> None:
    """Writes the model directory of a checkpoint.

    Args:
        job: what to compile for what.
        gpu: this machine's, where an engine is to be built.
        scratch: an empty directory.

    Raises:
        CompileError: the checkpoint or the machine is not fit for it.
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
        # An engine is built beside all of its weights: those of the model are not needed any more.
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
    """This machine's GPU, or None for a target that needs none.

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
            f"compiling needs {', '.join(missing)}: run the job in the compiler image, or "
            "pip install -r requirements-export.txt"
        )


def _resource_reason(error: BaseException, scratch: Path) -> str | None:
    """The reason where the machine was too small, or None."""
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return (
            f"no space left for {scratch.parent} ({error.strerror}): give the job a larger volume"
        )
    # torch raises a RuntimeError that names its allocator.
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "out of memory: run the job on an instance with more memory"
    return None


def _sizes(paths: Iterable[Path]) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in paths}


def _end_with_parent() -> None:
    """Ends this process when the other end of its standard input is closed, as at a kill."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(EXIT_OPERATOR_PROBLEM)


if __name__ == "__main__":
    # A Ctrl-C reaches every process of the terminal; the parent is the one that decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    exit_code = main(Path(sys.argv[1]), os.environ)
    logging.shutdown()
    sys.stdout.flush()
    # What is left of libraries' threads and memory would take seconds to put away.
    os._exit(exit_code)
