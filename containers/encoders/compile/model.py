"""Loads a checkpoint. Imports torch and transformers; it keeps to Python 3.10.

Only code of the installed packages runs: the caller names the model's class, and neither
`trust_remote_code` nor `auto_map` in a config is read. Weights are safetensors, which hold no code.
"""

import warnings
from pathlib import Path
from typing import Any

import transformers

from containers.encoders.manifest import EMBEDDINGS
from containers.jobs import pretrained


def quieten() -> None:
    """Turns off the libraries' warnings and progress bars; errors still reach the log."""
    # Its warnings are about missing weights, which are reported as an error.
    transformers.utils.logging.set_verbosity_error()
    pretrained.quieten()
    # transformers warns of its own deprecated names.
    warnings.filterwarnings("ignore", category=FutureWarning)


# Any: a class of transformers.
def load_model(directory: Path, model_class: str, task: str, *, eager: bool = False) -> Any:
    """Loads a checkpoint's weights, in float32; `CompileError` if some are missing or not finite.

    With `eager`, attention is computed in single operators. Neuron's compilers take fused attention
    apart again, and less well.
    """
    options: dict[str, Any] = {}
    if eager:
        options["attn_implementation"] = "eager"
    if task == EMBEDDINGS and not model_class.startswith("DistilBert"):
        # Weights of the first token's pooler, for classification; many checkpoints have none.
        options["add_pooling_layer"] = False
    model = pretrained.load_pretrained(
        getattr(transformers, model_class), directory, use_safetensors=True, **options
    )
    model = model.float().eval().requires_grad_(False)
    pretrained.check_finite(model)
    return model
