"""From a traced module to ONNX files: what the exports of all families share."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import onnx
import onnx_ir
import torch
from transformers import PreTrainedModel

from containers.tensorrt.external_data import LARGEST_INLINE_INITIALISER_BYTES, ExportError

Precision: TypeAlias = Literal["fp32", "fp16"]

OPSET_VERSION = 20
# Above it the weights lie beside the graph, in one file. Protobuf messages end at 2 GiB, and a
# graph with its weights inside is in memory three times over while it is written: exporting
# 1.1 GiB of GPT-2 took 3.2 times that at its peak, and 1.1 times that with the weights beside it,
# the model itself among them.
EXTERNAL_DATA_THRESHOLD_BYTES = 256 * 2**20

_MODEL_TYPES: Final[dict[Precision, torch.dtype]] = {"fp32": torch.float32, "fp16": torch.float16}
# The exporter has several spellings for the sum of the two.
_GROWN: Final = "past+sequence"


def cache_names(prefix: str, layers: int) -> list[str]:
    """The names of a cache's tensors in graph order.

    Args:
        prefix: past_key_values or present; of encoder-decoder models cross_key_values as well.
        layers: of the decoder.
    """
    return [f"{prefix}.{layer}.{kind}" for layer in range(layers) for kind in ("key", "value")]


def check_exportable(model: PreTrainedModel, family: str, precision: Precision) -> None:
    """Checks that a model is of a family, and that its weights are of a precision.

    Raises:
        ExportError: It is not.
    """
    if model.config.model_type != family:
        raise ExportError(
            f"cannot export a model of type {model.config.model_type!r}: this step graph is "
            f"{family}'s"
        )
    if model.dtype != _MODEL_TYPES[precision]:
        raise ExportError(
            f"cannot export a {model.dtype} model as {precision}: load it with "
            f"from_pretrained(..., dtype={_MODEL_TYPES[precision]})"
        )


def data_file_name(graph_file_name: str) -> str:
    """The name of the file beside a graph that holds its weights."""
    return f"{graph_file_name}.data"


def export_graph(
    module: torch.nn.Module,
    path: Path,
    *,
    example: Sequence[Any],
    inputs: Sequence[str],
    outputs: Sequence[str],
    dynamic_shapes: Mapping[str, Any],
    grown_axes: Mapping[str, int],
    opset_version: int,
    external_data_threshold_bytes: int,
) -> None:
    """Traces a module and writes its graph, the same bytes on every machine.

    Args:
        module: What becomes the graph.
        path: The ONNX file; its directory exists. Weights of more than the threshold go to
            `data_file_name` beside it, and a file of that name goes where they do not.
        example: Arguments of its `forward`. No dynamic size is 1: torch.export would take it for
            a constant.
        inputs: Names of the graph's inputs, in the order of the flattened arguments.
        outputs: Names of what `forward` returns.
        dynamic_shapes: Names of the dynamic axes of each argument of `forward`.
        grown_axes: Prefixes of the names of inputs and outputs that have an axis of the length
            past+sequence, and which it is.
        opset_version: ONNX operator set.
        external_data_threshold_bytes: See `EXTERNAL_DATA_THRESHOLD_BYTES`.
    """
    with warnings.catch_warnings():
        # One notice per input that shares an axis name, and torch's use of its own old names.
        warnings.filterwarnings("ignore", message=r"# The axis name", category=UserWarning)
        warnings.filterwarnings("ignore", category=FutureWarning)
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        program = torch.onnx.export(
            module.eval(),
            tuple(example),
            dynamo=True,
            opset_version=opset_version,
            input_names=list(inputs),
            output_names=list(outputs),
            dynamic_shapes=dict(dynamic_shapes),
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch.onnx.export returns a program when dynamo=True")
    _write(program.model, path, grown_axes, external_data_threshold_bytes)


def _write(
    graph_model: onnx_ir.Model,
    path: Path,
    grown_axes: Mapping[str, int],
    external_data_threshold_bytes: int,
) -> None:
    """Writes the graph; the weights go from the model's own memory to the file, one by one."""
    data_path = path.with_name(data_file_name(path.name))
    weights_bytes = sum(
        value.const_value.nbytes for value in graph_model.graph.initializers.values()
    )
    if weights_bytes > external_data_threshold_bytes:
        onnx_ir.external_data.unload_from_model(
            graph_model,
            path.parent,
            data_path.name,
            size_threshold_bytes=LARGEST_INLINE_INITIALISER_BYTES,
        )
    else:
        # Of an export before, which was larger: no graph refers to it any more.
        data_path.unlink(missing_ok=True)
    message = onnx_ir.serde.serialize_model(graph_model)
    _name_axes(message, grown_axes)
    _drop_provenance(message)
    onnx.save_model(message, str(path))


def _name_axes(message: onnx.ModelProto, grown_axes: Mapping[str, int]) -> None:
    """Gives the sum of past and sequence one name."""
    for value in (*message.graph.input, *message.graph.output):
        for prefix, axis in grown_axes.items():
            if value.name.startswith(prefix):
                value.type.tensor_type.shape.dim[axis].dim_param = _GROWN


def _drop_provenance(message: onnx.ModelProto) -> None:
    """Removes stack traces, which hold the exporting machine's paths, and inferred shapes.

    Without them the same model and package versions give the same bytes on every machine, and the
    graph is a few times smaller. Readers infer the shapes again.
    """
    graph = message.graph
    del message.metadata_props[:], graph.metadata_props[:], graph.value_info[:]
    message.doc_string = graph.doc_string = ""
    for entry in (*graph.node, *graph.input, *graph.output, *graph.initializer):
        entry.doc_string = ""
        del entry.metadata_props[:]
