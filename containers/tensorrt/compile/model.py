"""Loads a checkpoint, and checks a graph against it. Imports torch and transformers."""

from pathlib import Path

import transformers
from transformers import GPT2LMHeadModel

from containers.jobs.report import CompileError
from containers.tensorrt.compile.checkpoint import SLOW_TOKENIZER_FILES, Checkpoint
from containers.tensorrt.compile.pretrained_models import (
    NEW_TOKENS,
    example_prompts,
    plain_generation,
)
from containers.tensorrt.compile.pretrained_models import load_model as load
from containers.tensorrt.export.graph_files import Precision
from containers.tensorrt.export.parity import Parity, check_step_graph
from containers.tensorrt.model_directory import ModelConfig


def load_model(checkpoint: Checkpoint, precision: Precision) -> GPT2LMHeadModel:
    """Loads a checkpoint's weights, in the precision of the graph.

    Raises:
        CompileError: the weights cannot be loaded, some are missing, or some are not finite.
    """
    model: GPT2LMHeadModel = load(GPT2LMHeadModel, checkpoint.directory, precision)
    return model


def write_tokenizer(directory: Path, path: Path) -> None:
    """Writes the tokenizer.json of a checkpoint that has only vocab.json and merges.txt.

    Raises:
        CompileError: these files cannot be read.
    """
    try:
        tokenizer = transformers.GPT2TokenizerFast.from_pretrained(
            str(directory), local_files_only=True
        )
    # A bad file makes the libraries raise any exception, as for weights.
    except Exception as error:
        raise CompileError(
            f"cannot make a tokenizer of {' and '.join(SLOW_TOKENIZER_FILES)} in {directory}: "
            f"{type(error).__name__}: {error}"
        ) from error
    tokenizer.backend_tokenizer.save(str(path))


def verify(graph: Path, model: GPT2LMHeadModel, config: ModelConfig) -> Parity:
    """Checks that a graph's tokens and logits equal those of the model in the same precision.

    Raises:
        ParityError: tokens or logits differ by more than the tolerance.
    """
    new_tokens = min(NEW_TOKENS, config.max_positions - 1)
    prompts = example_prompts(config.vocabulary_size, config.max_positions - new_tokens)
    with plain_generation(model):
        return check_step_graph(graph, model, prompts, new_tokens=new_tokens)
