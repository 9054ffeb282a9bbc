"""Checks of a checkpoint's files, in seconds, before torch is loaded and memory is used."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from containers.jobs.checkpoint_files import (
    CheckpointFiles,
    CompilableModels,
    checked_weight_files,
    config_document,
    tokenizer_problem,
)
from containers.jobs.paths import JobPaths
from containers.jobs.supervision import checked_input
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.job import Hyperparameters, Job, read_hyperparameters
from containers.tensorrt.model_directory import ModelConfig, read_config

SLOW_TOKENIZER_FILES: Final = ("vocab.json", "merges.txt")

# Models of this type with another kind of head are left out. Loaded as language models they would
# answer, but with a head that was never trained.
_MODELS: Final = CompilableModels(
    model_type="gpt2",
    kind="a language model",
    architectures=("GPT2LMHeadModel", "GPT2DoubleHeadsModel", "GPT2Model"),
)


@dataclass(frozen=True)
class Checkpoint(CheckpointFiles):
    config: ModelConfig


def read_checkpoint(
    directory: Path, asked: Hyperparameters | None
) -> tuple[Checkpoint | None, list[str]]:
    """Checks a checkpoint's files, and that they suit the hyperparameters if these are valid.

    Returns None if there is a problem, and every problem.
    """
    problems: list[str] = []
    config = _checked_config(directory, problems)
    weight_files = checked_weight_files(directory, problems, takes_pickles=True)
    _check_tokenizer(directory, config, problems)
    if asked is not None and config is not None:
        _check_positions(asked, config, problems)
    if problems or config is None:
        return None, problems
    return Checkpoint(directory, weight_files, config), []


def _check_positions(asked: Hyperparameters, config: ModelConfig, problems: list[str]) -> None:
    needed = asked.max_input_tokens + asked.max_new_tokens
    if needed > config.max_positions:
        problems.append(
            f"max_input_tokens={asked.max_input_tokens} and max_new_tokens={asked.max_new_tokens} "
            f"need {needed} positions, and the checkpoint has n_positions={config.max_positions}: "
            "lower one of them"
        )


def _checked_config(directory: Path, problems: list[str]) -> ModelConfig | None:
    path = directory / CONFIG_FILE
    document = config_document(directory, problems)
    if document is None or not _MODELS.check(path, document, problems):
        return None
    if document.get("add_cross_attention"):
        problems.append(
            f"{path} has add_cross_attention: the decoder of an encoder-decoder model cannot be "
            "compiled alone"
        )
    try:
        return read_config(directory)
    except ModelLoadError as error:
        problems.append(str(error))
        return None


def _check_tokenizer(directory: Path, config: ModelConfig | None, problems: list[str]) -> None:
    path = directory / TOKENIZER_FILE
    if not path.is_file():
        if not all((directory / name).is_file() for name in SLOW_TOKENIZER_FILES):
            problems.append(
                f"{directory} lacks {TOKENIZER_FILE}, and {' and '.join(SLOW_TOKENIZER_FILES)} to "
                "make it from"
            )
        return
    problem = tokenizer_problem(path, config.vocabulary_size if config else None)
    if problem is not None:
        problems.append(problem)


def prepare(paths: JobPaths) -> Job[Hyperparameters, Checkpoint]:
    """Reads hyperparameters and checkpoint, which is the first step of both processes of a job.

    A `CompileError` holds all problems with both.
    """
    read = partial(read_hyperparameters, takes_int8=True)
    return Job(*checked_input(paths, read, read_checkpoint))
