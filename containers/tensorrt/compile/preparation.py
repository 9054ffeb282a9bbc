"""The first step of both processes of a compile job: reads and checks its input."""

from dataclasses import dataclass

from containers.jobs.paths import JobPaths
from containers.jobs.report import CompileError
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
    hyperparameters, problems = read_hyperparameters(paths.input_config)
    try:
        checkpoint, checkpoint_problems = read_checkpoint(paths.weights)
    except OSError as error:
        raise CompileError(f"cannot read {error.filename}: {error.strerror}") from error
    problems += checkpoint_problems
    if hyperparameters is not None and checkpoint is not None:
        positions = checkpoint.config.max_positions
        needed = hyperparameters.max_input_tokens + hyperparameters.max_new_tokens
        if needed > positions:
            problems.append(
                f"max_input_tokens={hyperparameters.max_input_tokens} and "
                f"max_new_tokens={hyperparameters.max_new_tokens} need {needed} positions, and the "
                f"checkpoint has n_positions={positions}: lower one of them"
            )
    if problems or hyperparameters is None or checkpoint is None:
        raise CompileError("; ".join(problems))
    return Job(hyperparameters, checkpoint)
