"""Checks of a T5 checkpoint's files, in seconds, before torch is loaded and memory is used."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from containers.jobs.checkpoint_files import (
    CheckpointFiles,
    CompilableModels,
    checked_weight_files,
    config_document,
    no_tokenizer,
    tokenizer_problem,
)
from containers.jobs.paths import JobPaths
from containers.jobs.supervision import checked_input, run_job
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.job import Hyperparameters, Job, read_hyperparameters
from containers.triton.model_directory import SequenceConfig, read_config

# FLAN-T5 checkpoints have this type and class too.
_MODELS: Final = CompilableModels(
    model_type="t5",
    kind="a sequence-to-sequence model",
    architectures=("T5ForConditionalGeneration",),
)


@dataclass(frozen=True)
class Checkpoint(CheckpointFiles):
    """A Hugging Face directory that has been checked; `config` is of both config files."""

    config: SequenceConfig


def read_checkpoint(
    directory: Path, _asked: Hyperparameters | None
) -> tuple[Checkpoint | None, list[str]]:
    """Returns the checkpoint, or None if there is a problem; and every problem.

    T5 takes texts of any length, so any limits suit it.
    """
    problems: list[str] = []
    config = _checked_config(directory, problems)
    weight_files = checked_weight_files(directory, problems, takes_pickles=True)
    _check_tokenizer(directory, config, problems)
    if problems or config is None:
        return None, problems
    return Checkpoint(directory, weight_files, config), []


def prepare(paths: JobPaths) -> Job[Hyperparameters, Checkpoint]:
    """Reads hyperparameters and checkpoint, which is the first step of both processes of a job."""
    return Job(*checked_input(paths, read_hyperparameters, read_checkpoint))


def run(environ: Mapping[str, str]) -> int:
    """Runs a compile job, whose child is `worker`; returns the process's exit code."""
    return run_job(environ, lambda paths: prepare(paths).child("containers.triton.compile.worker"))


def _checked_config(directory: Path, problems: list[str]) -> SequenceConfig | None:
    path = directory / CONFIG_FILE
    document = config_document(directory, problems)
    if document is None or not _MODELS.check(path, document, problems):
        return None
    try:
        # Read as the container reads it when it serves.
        config = read_config(directory)
    except ModelLoadError as error:
        problems.append(str(error))
        return None
    if config.start_token_id >= config.vocabulary_size:
        problems.append(
            f"{path} has decoder_start_token_id {config.start_token_id}, and its vocab_size is "
            f"{config.vocabulary_size}: the decoder's first token must be in the vocabulary"
        )
    return config


def _check_tokenizer(directory: Path, config: SequenceConfig | None, problems: list[str]) -> None:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        problems.append(no_tokenizer(directory))
        return
    problem = tokenizer_problem(path, config.vocabulary_size if config else None)
    if problem is not None:
        problems.append(problem)
