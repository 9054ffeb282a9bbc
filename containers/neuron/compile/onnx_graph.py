"""Writes the ONNX graph that the CPU serves: any batch, any length. Imports torch and onnx."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Final

import onnx
import onnx_ir
import torch
from transformers import PreTrainedModel

from containers.neuron.compile.modules import EncoderModule, example_inputs, input_names
from containers.neuron.manifest import TASK_OUTPUTS

OPSET_VERSION: Final = 20


def export_onnx(model: PreTrainedModel, task: str, path: Path) -> tuple[str, ...]:
    """Writes the graph of a model, the same bytes on every machine.

    Args:
        model: with the head of the task; its weights are float32.
        task: one of the manifest's tasks.
        path: the ONNX file; its directory exists.

    Returns:
        The names of the graph's inputs, in order.
    """
    inputs = input_names(model)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    with warnings.catch_warnings():
        # torch warns once per input that shares an axis name, and of its own deprecated names.
        warnings.filterwarnings("ignore", message=r"# The axis name", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        program = torch.onnx.export(
            EncoderModule(model, task, inputs).eval(),
            # No dynamic size is 1, because torch.export would take it for a constant.
            example_inputs(inputs, rows=2, columns=6),
            dynamo=True,
            opset_version=OPSET_VERSION,
            input_names=list(inputs),
            output_names=list(TASK_OUTPUTS[task]),
            dynamic_shapes=(tuple(axes for _ in inputs),),
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returns a program when dynamo=True")
    message = onnx_ir.serde.serialize_model(program.model)
    _drop_provenance(message)
    onnx.save_model(message, str(path))
    return inputs


def _drop_provenance(message: onnx.ModelProto) -> None:
    """Removes stack traces, which hold the exporting machine's paths, and inferred shapes."""
    graph = message.graph
    del message.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    message.doc_string = graph.doc_string = ""
    for entry in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        entry.doc_string = ""
        del entry.metadata_props[:]
