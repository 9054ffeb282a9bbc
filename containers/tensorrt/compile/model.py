"""Loads a checkpoint, and checks a graph against it. Imports torch and transformers.

Only code of the installed packages runs: the model class is named here, and neither
`trust_remote_code` nor `auto_map` in a config is read. Pickled weights are read by torch's
restricted unpickler, which makes tensors and calls no other code.
"""

from pathlib import Path
from typing import Final

import numpy as np
import transformers
from transformers import GenerationConfig, GPT2LMHeadModel

from containers.jobs import pretrained
from containers.jobs.report import CompileError
from containers.tensorrt.compile.checkpoint import SLOW_TOKENIZER_FILES, Checkpoint
from containers.tensorrt.export import Parity, check_step_graph
from containers.tensorrt.export.graph_files import MODEL_TYPES, Precision
from containers.tensorrt.model_directory import ModelConfig

# Unequal lengths cover padding. The lengths are small, because a step of 1.5 billion parameters
# takes seconds on a CPU. Both implementations decode each prompt alone and in a batch.
_PROMPT_LENGTHS: Final = (7, 1, 4)
_NEW_TOKENS: Final = 4


def load_model(checkpoint: Checkpoint, precision: Precision) -> GPT2LMHeadModel:
    """Loads a checkpoint's weights, in the precision of the graph.

    Raises:
        CompileError: the weights cannot be loaded, some are missing, or some are not finite.
    """
    model: GPT2LMHeadModel = pretrained.load_pretrained(
        GPT2LMHeadModel, checkpoint.directory, dtype=MODEL_TYPES[precision]
    )
    pretrained.check_finite(model, f" in {precision}")
    return model.eval()


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
    """Checks that a graph's tokens and logits equal the model's.

    The prompts are the same in every run for the same vocabulary. Beams, penalties and end tokens
    of the checkpoint's generation config are not part of the graph, so they are left aside.

    Args:
        graph: the step graph; external data lies beside it.
        model: the model that the graph was exported from, in the graph's precision.
        config: gives the vocabulary and the number of positions.

    Returns:
        The number of compared tokens, and the largest difference.

    Raises:
        ParityError: tokens or logits differ by more than the tolerance.
    """
    new_tokens = min(_NEW_TOKENS, config.max_positions - 1)
    numbers = np.random.default_rng(config.vocabulary_size)
    prompts = [
        numbers.integers(
            config.vocabulary_size, size=min(length, config.max_positions - new_tokens)
        ).tolist()
        for length in _PROMPT_LENGTHS
    ]
    checkpoint_generation, model.generation_config = model.generation_config, GenerationConfig()
    try:
        return check_step_graph(graph, model, prompts, new_tokens=new_tokens)
    finally:
        model.generation_config = checkpoint_generation
