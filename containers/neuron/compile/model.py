"""Loads a checkpoint. Imports torch and transformers; it keeps to Python 3.10.

Only code of the installed packages runs: the order names the model's class, and neither
`trust_remote_code` nor `auto_map` in a config is read. Weights are safetensors, which hold no code.
"""

import logging
import warnings
from typing import Any, Final

import torch
import transformers

from containers.jobs.report import CompileError
from containers.neuron.compile.order import CompileOrder
from containers.neuron.manifest import CPU, EMBEDDINGS

_NAMES_SHOWN: Final = 3


def quieten() -> None:
    """Turns off the libraries' warnings and progress bars; errors still reach the log."""
    # Its warnings are about missing weights, which `load_model` checks and reports as an error.
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_default_handler()
    transformers.utils.logging.enable_propagation()
    transformers.utils.logging.disable_progress_bar()
    logging.captureWarnings(True)
    # transformers warns of its own deprecated names.
    warnings.filterwarnings("ignore", category=FutureWarning)
    # It warns about every operator of torchvision, which is not installed.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)


# Any: a class of transformers that the order names.
def load_model(order: CompileOrder) -> Any:
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
    try:
        model, report = getattr(transformers, order.model_class).from_pretrained(
            str(order.checkpoint),
            local_files_only=True,
            use_safetensors=True,
            output_loading_info=True,
            **options,
        )
    except MemoryError:
        raise
    # A bad file makes transformers, safetensors and torch raise any exception.
    except Exception as error:
        raise CompileError(
            f"cannot load the checkpoint in {order.checkpoint}: {type(error).__name__}: {error}"
        ) from error
    # Missing weights would be random numbers.
    missing = sorted(report["missing_keys"])
    if missing:
        raise CompileError(
            f"the checkpoint in {order.checkpoint} lacks {len(missing)} weights: "
            f"{_shortened(missing)}"
        )
    model = model.float().eval()
    unusable = sorted(
        name for name, weights in model.named_parameters() if not torch.isfinite(weights).all()
    )
    if unusable:
        raise CompileError(f"{len(unusable)} weights are not finite: {_shortened(unusable)}")
    for weights in model.parameters():
        weights.requires_grad_(False)
    return model


def _shortened(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
