"""The first step of both processes of a compile job: reads and checks its input."""

from dataclasses import dataclass

from containers.jobs.paths import JobPaths
from containers.jobs.supervision import checked_input
from containers.tensorrt.compile.checkpoint import Checkpoint, read_checkpoint
from containers.tensorrt.compile.job import Hyperparameters, read_hyperparameters


@dataclass(frozen=True)
class Job:
    """A job whose input was checked."""

    hyperparameters: Hyperparameters
    checkpoint: Checkpoint


def prepare(paths: JobPaths) -> Job:
    """Reads hyperparameters and checkpoint.

    Raises:
        CompileError: the message holds all problems with both.
    """
    return Job(*checked_input(paths, read_hyperparameters, read_checkpoint))
