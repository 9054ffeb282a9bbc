"""Loads a model in the precision of its graphs, and compares it with them.

Imports torch and transformers. Only code of the installed packages runs: the caller names the model
class, and neither `trust_remote_code` nor `auto_map` in a config is read. Pickled weights are read
by torch's restricted unpickler, which makes tensors and calls no other code.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import tokenizers
import transformers
from transformers import GenerationConfig, GPT2LMHeadModel

from containers.jobs import pretrained
from containers.jobs.report import CompileError
from containers.tensorrt.compile.checkpoint import SLOW_TOKENIZER_FILES
from containers.tensorrt.export.graph_files import MODEL_TYPES, Precision
from containers.tensorrt.export.parity import Parity, check_step_graph, compare_quantized
from containers.tensorrt.model_directory import ModelConfig

# Unequal lengths cover padding. The lengths are small, because a step of 1.5 billion parameters
# takes seconds on a CPU. Both implementations decode each prompt alone and in a batch.
_PROMPT_LENGTHS: Final = (7, 1, 4)
NEW_TOKENS: Final = 4
# Beginnings of texts; a model that was tuned on others still goes its own way after them.
_TEXTS: Final = (
    "The", "How to", "A list of", "In 1999,", "She said that", "The best way to",
    "To learn more about", "Specifies the name of", "This parameter is required if",
    "Yesterday the weather was so good that", "def main():", "Dear customer, thank you for",
)  # fmt: skip
_MEASURED_TOKENS: Final = 40


# Any: a class of transformers, and its model.
def load_model(model_class: Any, directory: Path, precision: Precision) -> Any:
    """Returns a checkpoint's model, in the precision of its graphs.

    The model class has all of the checkpoint's weights. It may keep some layers in float32 in
    either precision. A `CompileError` says that weights cannot be loaded, are missing, or are not
    finite.
    """
    model = pretrained.load_pretrained(model_class, directory, dtype=MODEL_TYPES[precision])
    pretrained.check_finite(model, f" in {precision}")
    return model.eval()


def example_prompts(vocabulary_size: int, longest: int = max(_PROMPT_LENGTHS)) -> list[list[int]]:
    """Returns prompts to compare, the same in every run for the same vocabulary."""
    numbers = np.random.default_rng(vocabulary_size)
    return [
        numbers.integers(vocabulary_size, size=min(length, longest)).tolist()
        for length in _PROMPT_LENGTHS
    ]


# Any: a model of transformers.
@contextmanager
def plain_generation(model: Any, **settings: Any) -> Iterator[None]:
    """Makes a model generate as its graphs do, without its config's beams and end tokens."""
    before, model.generation_config = model.generation_config, GenerationConfig(**settings)
    try:
        yield
    finally:
        model.generation_config = before


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
