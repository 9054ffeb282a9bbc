"""Loads a checkpoint. Imports torch and transformers; it keeps to Python 3.10.

Only code of the installed packages runs: the order names the model's class, and neither
`trust_remote_code` nor `auto_map` in a config is read. Weights are safetensors, which hold no code.
"""

import warnings
from typing import Any

import transformers

from containers.jobs import pretrained
from containers.neuron.compile.worker_command import WorkerCommand
from containers.neuron.manifest import CPU, EMBEDDINGS


def quieten() -> None:
    """Turns off the libraries' warnings and progress bars; errors still reach the log."""
    # Its warnings are about missing weights, which are reported as an error.
    transformers.utils.logging.set_verbosity_error()
    pretrained.quieten()
    # transformers warns of its own deprecated names.
    warnings.filterwarnings("ignore", category=FutureWarning)


# Any: a class of transformers that the order names.
def load_model(order: WorkerCommand) -> Any:
    """Loads a checkpoint's weights, in float32: compilers cast them.

    Raises:
        CompileError: the weights cannot be loaded, some are missing, or some are not finite.
    """
    options: dict[str, Any] = {}
    if order.target != CPU:
        # Compilers take fused attention apart again, and less well.
        options["attn_implementation"] = "eager"
    if order.task == EMBEDDINGS and not order.model_class.startswith("DistilBert"):
        # Weights of the first token's pooler, for classification; many checkpoints have none.
        options["add_pooling_layer"] = False
    model_class = getattr(transformers, order.model_class)
    model = pretrained.load_pretrained(
        model_class, order.checkpoint, use_safetensors=True, **options
    )
    model = model.float().eval().requires_grad_(False)
    pretrained.check_finite(model)
    return model
