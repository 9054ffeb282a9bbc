"""Checks a graph against its checkpoint. Imports torch and transformers."""

import math
from pathlib import Path
from typing import Final

import tokenizers
import transformers
from transformers import GPT2LMHeadModel

from containers.jobs.report import CompileError
from containers.tensorrt.compile.checkpoint import SLOW_TOKENIZER_FILES
from containers.tensorrt.compile.pretrained_models import (
    NEW_TOKENS,
    example_prompts,
    plain_generation,
)
from containers.tensorrt.export.parity import Parity, check_step_graph, compare_quantized
from containers.tensorrt.model_directory import ModelConfig

# Beginnings of texts; a model that was tuned on others still goes its own way after them.
_TEXTS: Final = (
    "The", "How to", "A list of", "In 1999,", "She said that", "The best way to",
    "To learn more about", "Specifies the name of", "This parameter is required if",
    "Yesterday the weather was so good that", "def main():", "Dear customer, thank you for",
)  # fmt: skip
_MEASURED_TOKENS: Final = 40


def write_tokenizer(directory: Path, path: Path) -> None:
    """Writes the tokenizer.json of a checkpoint that has only vocab.json and merges.txt."""
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
    """Checks that a graph's tokens and logits equal those of the model in the same precision."""
    new_tokens = min(NEW_TOKENS, config.max_positions - 1)
    prompts = example_prompts(config.vocabulary_size, config.max_positions - new_tokens)
    with plain_generation(model):
        return check_step_graph(graph, model, prompts, new_tokens=new_tokens)


def measure_accuracy(
    graph: Path, model: GPT2LMHeadModel, config: ModelConfig, tokenizer: Path
) -> dict[str, float]:
    """Compares a graph of int8 with its model, along the model's own greedy texts.

    Returns the tokens compared, those that the graph would choose too, and the largest difference
    of a logit.
    """
    new_tokens = min(_MEASURED_TOKENS, config.max_positions - 1)
    encoder = tokenizers.Tokenizer.from_file(str(tokenizer))
    prompts = [encoder.encode(text).ids[: config.max_positions - new_tokens] for text in _TEXTS]
    with plain_generation(model):
        parity = compare_quantized(graph, model, [each or [0] for each in prompts], new_tokens)
    return {
        "tokens": parity.tokens,
        "equal_tokens": parity.tokens - parity.ties,
        # Rounded up, because another processor adds in another order.
        "largest_logit_difference": math.ceil(100 * parity.largest_logit_difference) / 100,
    }
