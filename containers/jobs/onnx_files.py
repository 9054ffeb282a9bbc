"""Traces a module and writes its ONNX graph. Imports torch and onnx.

The same model and package versions give the same bytes on every machine.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import onnx
import onnx_ir
import torch

# It has the fused GELU.
_OPSET_VERSION: Final = 20


# Any: the arguments of torch.export.
def trace(
    module: torch.nn.Module,
    *,
    example: Sequence[Any],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic_shapes: Any,
) -> onnx_ir.Model:
    """Returns the graph of a module.

    No dynamic size of the `example` is 1, because torch.export would take it for a constant.
    `inputs` names the graph's inputs, in the order of the flattened arguments, and `outputs` the
    values that `forward` returns.
    """
    with warnings.catch_warnings():
        # torch warns once per input that shares an axis name, and of its own deprecated names.
        warnings.filterwarnings("ignore", message=r"# The axis name", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        program = torch.onnx.export(
            module.eval(),
            tuple(example),
            dynamo=True,
            opset_version=_OPSET_VERSION,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dynamic_shapes,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returns a program when dynamo=True")
    return program.model


def save(message: onnx.ModelProto, path: Path) -> None:
    """Writes a graph without stack traces, which hold this machine's paths, and inferred shapes.

    The graph is a few times smaller without them. Readers infer the shapes again.
    """
    graph = message.graph
    del message.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    message.doc_string = graph.doc_string = ""
    for entry in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        entry.doc_string = ""
        del entry.metadata_props[:]
    onnx.save_model(message, str(path))
