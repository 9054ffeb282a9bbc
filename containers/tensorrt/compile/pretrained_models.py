"""Loads a model in the precision of its graphs, and prepares its comparison with them.

Imports torch and transformers.

Only code of the installed packages runs: the caller names the model class, and neither
`trust_remote_code` nor `auto_map` in a config is read. Pickled weights are read by torch's
restricted unpickler, which makes tensors and calls no other code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
from transformers import GenerationConfig

from containers.jobs import pretrained
from containers.tensorrt.export.graph_files import MODEL_TYPES, Precision

# Unequal lengths cover padding. The lengths are small, because a step of 1.5 billion parameters
# takes seconds on a CPU. Both implementations decode each prompt alone and in a batch.
_PROMPT_LENGTHS: Final = (7, 1, 4)
NEW_TOKENS: Final = 4


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
