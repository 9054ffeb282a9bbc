"""Checks of a checkpoint's files, in seconds, before torch is loaded and memory is used."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import tokenizers

from containers.jobs.checkpoint_files import (
    CheckpointFiles,
    checked_weight_files,
    config_document,
)
from containers.jobs.paths import JobPaths
from containers.jobs.supervision import checked_input
from containers.serving.model_files import CONFIG_FILE, TOKENIZER_FILE
from containers.serving.predictor import ModelLoadError
from containers.tensorrt.compile.job import Hyperparameters, read_hyperparameters
from containers.tensorrt.model_directory import (
    ModelConfig,
    read_config,
)

SLOW_TOKENIZER_FILES: Final = ("vocab.json", "merges.txt")

_MODEL_TYPE: Final = "gpt2"
# Models of this type with another kind of head. Loaded as language models they would answer, but
# with a head that was never trained.
_ARCHITECTURES: Final = ("GPT2LMHeadModel", "GPT2DoubleHeadsModel", "GPT2Model")


@dataclass(frozen=True)
class Checkpoint(CheckpointFiles):
    """A Hugging Face directory that has been checked.

    Attributes:
        config: values of its config.json and generation_config.json.
    """

    config: ModelConfig


def read_checkpoint(
    directory: Path, asked: Hyperparameters | None
) -> tuple[Checkpoint | None, list[str]]:
    """Checks a checkpoint's files, and that they suit the hyperparameters.

    Args:
        directory: the checkpoint.
        asked: the hyperparameters; None if they are invalid, then only the files are checked.

    Returns:
        The checkpoint, or None if there is a problem; and every problem.
    """
    if not directory.is_dir():
        return None, [f"{directory} is not a directory: give the job an input channel `weights`"]
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
    if document is None:
        return None
    model_type = document.get("model_type")
    if model_type != _MODEL_TYPE:
        problems.append(
            f"{path} has model_type {json.dumps(model_type)}: this container compiles "
            f"{_MODEL_TYPE} only; serve other models with container: lmi"
        )
        return None
    architectures = document.get("architectures")
    named = architectures if isinstance(architectures, list) else []
    if named and not any(name in _ARCHITECTURES for name in named):
        problems.append(
            f"{path} has architectures {json.dumps(named)}, and only a language model can be "
            f"compiled: {', '.join(_ARCHITECTURES)}"
        )
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
    problem = tokenizer_problem(path, config)
    if problem is not None:
        problems.append(problem)


def tokenizer_problem(path: Path, config: ModelConfig | None) -> str | None:
    """Returns the problem with a tokenizer.json, or None.

    With a config, it is also a problem if the tokenizer does not fit the model.
    """
    try:
        tokenizer = tokenizers.Tokenizer.from_file(str(path))
    # The library has no exception class of its own.
    except Exception as error:
        return f"cannot load {path}: {error}"
    tokens = tokenizer.get_vocab_size()
    if config is not None and tokens > config.vocabulary_size:
        return (
            f"{path} has {tokens} tokens, and {CONFIG_FILE} has vocab_size "
            f"{config.vocabulary_size}: they are not of one model"
        )
    return None


@dataclass(frozen=True)
class Job:
    """A job whose input was checked."""

    hyperparameters: Hyperparameters
    checkpoint: Checkpoint


def prepare(paths: JobPaths) -> Job:
    """Reads hyperparameters and checkpoint, which is the first step of both processes of a job.

    Raises:
        CompileError: the message holds all problems with both.
    """
    return Job(*checked_input(paths, read_hyperparameters, read_checkpoint))
