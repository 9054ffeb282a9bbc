"""Writes traced modules as ONNX files; the shared part of all families' exports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import onnx_ir
import torch
from transformers import PreTrainedModel

from containers.jobs import onnx_files
from containers.jobs.report import CompileError

Precision: TypeAlias = Literal["fp32", "fp16"]

MODEL_TYPES: Final[dict[Precision, torch.dtype]] = {"fp32": torch.float32, "fp16": torch.float16}

# Above this size the weights lie beside the graph, in one file, for two reasons. Protobuf messages
# end at 2 GiB. A graph with its weights inside is in memory three times while it is written.
# Exporting 1.1 GiB of GPT-2 took 3.2 times that at its peak, the model itself included. With the
# weights beside the graph it took 1.1 times that.
_LARGEST_INLINE_WEIGHTS_BYTES: Final = 256 * 2**20
# Initialisers up to this size (shapes, scalars, constants of the graph itself) stay in the graph.
_LARGEST_INLINE_INITIALISER_BYTES: Final = 256
# The exporter has several spellings for the sum of past and sequence.
_GROWN: Final = "past+sequence"


class ExportError(CompileError):
    """The given model cannot become a working graph."""


def check_exportable(model: PreTrainedModel, family: str, precision: Precision) -> None:
    """Raises an `ExportError` if a model is of another family or precision."""
    if model.config.model_type != family:
        raise ExportError(
            f"cannot export a model of type {model.config.model_type!r}: this step graph is "
            f"{family}'s"
        )
    if model.dtype != MODEL_TYPES[precision]:
        raise ExportError(
            f"cannot export a {model.dtype} model as {precision}: load it with "
            f"from_pretrained(..., dtype={MODEL_TYPES[precision]})"
        )


def save_graph(graph: onnx_ir.Model, path: Path, grown_axes: Mapping[str, int]) -> None:
    """Writes a traced graph, the same bytes on every machine; the directory of `path` exists.

    Large weights go to one file beside `path`, with `.data` appended to its name. With smaller
    weights, an existing file of that name is removed. `grown_axes` has, for a prefix of names, the
    number of their axis of length past+sequence.
    """
    data_path = path.with_name(f"{path.name}.data")
    weights_bytes = sum(value.const_value.nbytes for value in graph.graph.initializers.values())
    if weights_bytes > _LARGEST_INLINE_WEIGHTS_BYTES:
        # The weights go from the model's own memory to the file, one by one.
        onnx_ir.external_data.unload_from_model(
            graph,
            path.parent,
            data_path.name,
            size_threshold_bytes=_LARGEST_INLINE_INITIALISER_BYTES,
        )
    else:
        # Left by an earlier, larger export: no graph refers to it any more.
        data_path.unlink(missing_ok=True)
    message = onnx_ir.serde.serialize_model(graph)
    for value in (*message.graph.input, *message.graph.output):
        for prefix, axis in grown_axes.items():
            if value.name.startswith(prefix):
                value.type.tensor_type.shape.dim[axis].dim_param = _GROWN
    onnx_files.save(message, path)
