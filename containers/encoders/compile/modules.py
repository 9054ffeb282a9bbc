"""An encoder with its head: loaded, as the module that is compiled, and traced. Imports torch.

Only code of the installed packages runs: the caller names the model's class, and neither
`trust_remote_code` nor `auto_map` in a config is read. Weights are safetensors, which hold no code.
It keeps to Python 3.10.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import transformers
from transformers import PreTrainedModel

from containers.encoders.manifest import (
    EMBEDDINGS,
    INPUT_NAMES,
    QUESTION_ANSWERING,
    TASK_OUTPUTS,
)
from containers.jobs import pretrained

if TYPE_CHECKING:
    import onnx_ir

# Model types whose texts have no token types.
_WITHOUT_TYPES = ("distilbert", "roberta", "xlm-roberta")


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


class EncoderModule(torch.nn.Module):  # type: ignore[misc, unused-ignore]  # untyped without torch
    """An encoder as runtimes take it: the manifest's inputs in order, its outputs as a tuple."""

    def __init__(self, model: PreTrainedModel, task: str, inputs: tuple[str, ...]) -> None:
        super().__init__()
        self.model = model
        self._task = task
        self._inputs = inputs

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        output = self.model(**dict(zip(self._inputs, tensors, strict=True)), return_dict=True)
        if self._task == QUESTION_ANSWERING:
            return (output.start_logits, output.end_logits)
        if self._task == EMBEDDINGS:
            return (output.last_hidden_state,)
        return (output.logits,)


def input_names(model: PreTrainedModel) -> tuple[str, ...]:
    if model.config.model_type in _WITHOUT_TYPES:
        return INPUT_NAMES[:2]
    return INPUT_NAMES


def example_inputs(inputs: tuple[str, ...], *, rows: int, columns: int) -> tuple[torch.Tensor, ...]:
    """Returns inputs to trace with; half of each row is padding, so that the mask matters."""
    tensors = {name: torch.zeros(rows, columns, dtype=torch.int64) for name in inputs}
    tensors["input_ids"] += torch.arange(columns) % 7
    tensors["attention_mask"][:, : max(1, columns // 2)] = 1
    return tuple(tensors[name] for name in inputs)


def trace_onnx(model: PreTrainedModel, task: str) -> onnx_ir.Model:
    """Returns a model's graph, which takes any batch of any length."""
    # Imported here, since only ONNX graphs need onnx.
    from containers.jobs import onnx_files

    inputs = input_names(model)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    return onnx_files.trace(
        EncoderModule(model, task, inputs),
        example=example_inputs(inputs, rows=2, columns=6),
        inputs=inputs,
        outputs=TASK_OUTPUTS[task],
        dynamic_shapes=(tuple(axes for _ in inputs),),
    )


def export_onnx(model: PreTrainedModel, task: str, path: Path) -> tuple[str, ...]:
    """Writes the graph of a model, the same on every machine; returns its inputs' names."""
    import onnx_ir

    from containers.jobs import onnx_files

    onnx_files.save(onnx_ir.serde.serialize_model(trace_onnx(model, task)), path)
    return input_names(model)
