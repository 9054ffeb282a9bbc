"""Loads the checkpoint of a compile job. Imports torch and transformers; keeps to Python 3.10."""

import logging
from pathlib import Path
from typing import Any, Final

import torch
import transformers

from containers.jobs.report import CompileError

_NAMES_SHOWN: Final = 3


def quieten() -> None:
    """Sends the libraries' messages to the container's log, and turns off progress bars."""
    transformers.utils.logging.disable_default_handler()
    transformers.utils.logging.enable_propagation()
    transformers.utils.logging.disable_progress_bar()
    logging.captureWarnings(True)
    torch_logger = logging.getLogger("torch")
    torch_logger.handlers.clear()
    torch_logger.propagate = True
    # It warns about every operator of torchvision, which is not installed.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)


# Any: a class of transformers, and the arguments and the result of its `from_pretrained`.
def load_pretrained(model_class: Any, directory: Path, **options: Any) -> Any:
    """Returns a checkpoint's model; `CompileError` if weights are missing or cannot be loaded."""
    try:
        model, report = model_class.from_pretrained(
            str(directory), local_files_only=True, output_loading_info=True, **options
        )
    except MemoryError:
        raise
    # A bad file makes transformers, safetensors, pickle and torch raise any exception.
    except Exception as error:
        raise CompileError(
            f"cannot load the checkpoint in {directory}: {type(error).__name__}: {error}"
        ) from error
    # Missing weights would be random numbers.
    missing = sorted(report["missing_keys"])
    if missing:
        raise CompileError(
            f"the checkpoint in {directory} lacks {len(missing)} weights: {_shortened(missing)}"
        )
    return model


# Any: a model of transformers.
def check_finite(model: Any, precision: str = "") -> None:
    """Raises `CompileError` if weights are not finite; its message has `precision` at the end."""
    unusable = sorted(
        name for name, weights in model.named_parameters() if not torch.isfinite(weights).all()
    )
    if unusable:
        raise CompileError(
            f"{len(unusable)} weights are not finite{precision}: {_shortened(unusable)}"
        )


def _shortened(names: list[str]) -> str:
    shown = ", ".join(names[:_NAMES_SHOWN])
    more = len(names) - _NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
