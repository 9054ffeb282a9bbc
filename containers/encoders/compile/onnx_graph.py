"""Traces the ONNX graph of an encoder: any batch, any length. Imports torch and onnx."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import onnx_ir
import torch
from transformers import PreTrainedModel

from containers.encoders.compile.modules import EncoderModule, example_inputs, input_names
from containers.encoders.manifest import TASK_OUTPUTS
from containers.jobs import onnx_files

OPSET_VERSION: Final = 20


def export_onnx(model: PreTrainedModel, task: str, path: Path) -> tuple[str, ...]:
    """Writes the graph of a model, the same on every machine; returns its inputs' names."""
    onnx_files.save(onnx_ir.serde.serialize_model(trace_encoder(model, task)), path)
    return input_names(model)


def trace_encoder(model: PreTrainedModel, task: str) -> onnx_ir.Model:
    inputs = input_names(model)
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("sequence")}
    return onnx_files.trace(
        EncoderModule(model, task, inputs),
        example=example_inputs(inputs, rows=2, columns=6),
        inputs=inputs,
        outputs=TASK_OUTPUTS[task],
        dynamic_shapes=(tuple(axes for _ in inputs),),
        opset_version=OPSET_VERSION,
    )
