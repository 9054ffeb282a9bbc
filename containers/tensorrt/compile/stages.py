"""The parts of a compile job's worker that every model family has.

Nothing here imports torch, so that a job that cannot succeed ends in seconds.
"""

import importlib.metadata
import importlib.util
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

from containers.jobs.checkpoint_files import CheckpointFiles
from containers.jobs.child import run_work
from containers.jobs.paths import JobPaths
from containers.jobs.report import CompileError, stage
from containers.serving.model_files import CONFIG_FILE
from containers.tensorrt.compile.gpu import Gpu, checked_gpu
from containers.tensorrt.compile.job import Job
from containers.tensorrt.model_directory import GENERATION_CONFIG_FILE

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
    scratch: Path,
    environ: Mapping[str, str],
    prepare: Callable[[JobPaths], Job[CheckpointT]],
    compile_checkpoint: Callable[[Job[CheckpointT], Gpu | None, Path], None],
) -> int:
    """Compiles into `scratch`; returns the exit code of the process.

    Args:
        scratch: an empty directory.
        environ: names the job's directories if they are not SageMaker's.
        prepare: checks the job's input.
        compile_checkpoint: writes the model directory; for a GPU, also its engines.
    """
    paths, _ = JobPaths.read(environ)

    def work() -> None:
        job = prepare(paths)
        # Checked before the minutes that the other stages take.
        gpu = checked_gpu(job.hyperparameters.target)
        _import_packages()
        compile_checkpoint(job, gpu, scratch)

    return run_work(work, scratch=scratch, output_dir=paths.output)


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
    """Writes config.json and generation_config.json.

    Args:
        checkpoint: its files are copied.
        model: has the settings of a checkpoint without generation_config.json.
        scratch: the model directory.
    """
    shutil.copyfile(checkpoint.directory / CONFIG_FILE, scratch / CONFIG_FILE)
    generation_config = checkpoint.directory / GENERATION_CONFIG_FILE
    if generation_config.is_file():
        shutil.copyfile(generation_config, scratch / GENERATION_CONFIG_FILE)
    else:
        model.generation_config.to_json_file(str(scratch / GENERATION_CONFIG_FILE))


def sizes(paths: Iterable[Path]) -> dict[str, int]:
    """Returns the size of each file in bytes, by name, for the log."""
    return {path.name: path.stat().st_size for path in paths}
