"""The program of a compile job: checks the input, then starts the worker.

The hyperparameter `task` tells a job of an encoder from one of GPT-2.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from containers.encoders.compile.checkpoint import Checkpoint, read_checkpoint
from containers.encoders.compile.job import EncoderHyperparameters, read_sequence_lengths
from containers.encoders.manifest import LARGEST_BATCH, TASK_OUTPUTS
from containers.jobs.hyperparameters import HyperparameterReader
from containers.jobs.paths import JobPaths
from containers.jobs.supervision import Child, checked_input, run_job
from containers.tensorrt.compile import checkpoint
from containers.tensorrt.compile.job import CPU_TARGET, Job, read_target

_WORKER: Final = "containers.tensorrt.compile.worker"
_ENCODER_WORKER: Final = "containers.tensorrt.compile.encoder_worker"
_PRECISIONS: Final = ("fp16", "fp32")


@dataclass(frozen=True)
class Hyperparameters(EncoderHyperparameters):
    """As the Neuron container's; the target is "cpu", alone with int8, or a compute capability."""

    @property
    def precision(self) -> Literal["fp16", "fp32"]:
        """Returns the precision of weights and outputs; always fp32 on the CPU."""
        return "fp32" if self.target == CPU_TARGET or self.dtype == "fp32" else "fp16"


def run(environ: Mapping[str, str]) -> int:
    return run_job(environ, _checked)


def _checked(paths: JobPaths) -> Child:
    reader = HyperparameterReader.open(paths.input_config)
    if not isinstance(reader, str) and reader.has("task"):
        return prepare_encoder(paths).child(_ENCODER_WORKER)
    return checkpoint.prepare(paths).child(_WORKER)


def read_hyperparameters(input_config_dir: Path) -> tuple[Hyperparameters | None, list[str]]:
    """Reads hyperparameters.json; returns None if there is a problem, and every problem."""
    reader = HyperparameterReader.open(input_config_dir)
    if isinstance(reader, str):
        return None, [reader]
    target = read_target(reader)
    dtypes = (*_PRECISIONS, "int8") if target == CPU_TARGET else _PRECISIONS
    read = Hyperparameters(
        target=target,
        task=reader.choice("task", tuple(TASK_OUTPUTS)),
        batch_size=reader.whole_number("batch_size", LARGEST_BATCH),
        sequence_lengths=read_sequence_lengths(reader),
        dtype=reader.choice("dtype", dtypes, default=_PRECISIONS[0]),
    )
    problems = reader.finish(Hyperparameters)
    return (None if problems else read), problems


def prepare_encoder(paths: JobPaths) -> Job[Hyperparameters, Checkpoint]:
    """Reads hyperparameters and checkpoint; a `CompileError` holds all problems with both."""
    return Job(*checked_input(paths, read_hyperparameters, read_checkpoint))
