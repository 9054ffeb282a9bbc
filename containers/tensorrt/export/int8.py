"""Quantises the weights of a graph to int8, for processors.

Every product with a weight becomes one of int8: the layers' and the head's. The embeddings stay
float32, since a batch reads only a few of their rows. Attention stays float32 too.

- Weights have a scale for each output channel. Their integers end at 64, because processors without
  VNNI add pairs of products in 16 bits: 2 x 255 x 64 fits there, and 2 x 255 x 127 does not.
- Activations have a scale for each row, computed in the graph. With one scale for all rows, as
  `DynamicQuantizeMatMul` has, a text's answer would depend on the texts that share its batch.

Rounding is all there is to it, so that the same graph gives the same bytes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx_ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from containers.tensorrt.export.graph_files import ExportError, save_graph

_LARGEST_WEIGHT: Final = 64
_LARGEST_ACTIVATION: Final = 127
# Of a row or an output channel; one of padding may be all zero.
_LEAST: Final = np.float32(1e-30)
# ONNX Runtime's own operators.
_DOMAIN: Final = "com.microsoft"


def quantize_graph(path: Path) -> int:
    """Replaces a float32 graph by one with int8 weights; returns the number of products.

    An `ExportError` says that the graph has none.
    """
    model = onnx_ir.load(path)
    graph = model.graph
    constants = [
        _initializer(graph, "int8.scale", np.float32(1 / _LARGEST_ACTIVATION)),
        _initializer(graph, "int8.zero", np.uint8(_LARGEST_ACTIVATION + 1)),
        _initializer(graph, "int8.least", _LEAST),
        _initializer(graph, "int8.axis", np.array([-1], dtype=np.int64)),
    ]
    found = [(node, weights) for node in graph if (weights := _weights(node)) is not None]
    if not found:
        raise ExportError(f"{path} has no product with a weight to quantise")
    for node, weights in found:
        _replace(graph, node, weights, constants)
    RemoveUnusedNodesPass()(model)
    model.opset_imports[_DOMAIN] = 1
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        save_graph(model, Path(scratch, path.name), {})
        # Large weights lay beside the old graph; the new ones may lie inside.
        path.with_name(f"{path.name}.data").unlink(missing_ok=True)
        for made in Path(scratch).iterdir():
            made.replace(path.with_name(made.name))
    return len(found)


def _weights(node: onnx_ir.Node) -> npt.NDArray[np.float32] | None:
    """Returns the weights, [inputs, outputs], of a product with constants; None of another node."""
    if node.op_type not in ("Gemm", "MatMul"):
        return None
    value, transposed = node.inputs[1], bool(node.attributes.get_int("transB", 0))
    producer = value.producer() if value is not None else None
    # The output head shares its weights with the embedding, which is the other way round.
    if producer is not None and producer.op_type == "Transpose":
        value, transposed = producer.inputs[0], not transposed
    if value is None or value.const_value is None or value.producer() is not None:
        return None
    weights: npt.NDArray[np.float32] = value.const_value.numpy()
    return weights.T if transposed else weights


def _replace(
    graph: onnx_ir.Graph,
    node: onnx_ir.Node,
    weights: npt.NDArray[np.float32],
    constants: list[onnx_ir.Value],
) -> None:
    """Puts the nodes of a quantised product in the place of a node."""
    activations, output = node.inputs[0], node.outputs[0]
    scale, zero, least, axis = constants
    scales = np.maximum(np.abs(weights).max(axis=0) / _LARGEST_WEIGHT, _LEAST)
    integers = np.ascontiguousarray(np.rint(weights / scales).astype(np.int8))
    name = output.name
    stored = _initializer(graph, f"{name}.int8", integers)
    channels = _initializer(graph, f"{name}.scales", scales)
    nodes: list[onnx_ir.Node] = []

    # Any: an attribute.
    def add(
        op_type: str, *inputs: onnx_ir.Value | None, domain: str = "", **attributes: Any
    ) -> Any:
        made = onnx_ir.node(op_type, inputs, attributes, domain=domain)
        made.outputs[0].name = f"{name}.{len(nodes)}"
        nodes.append(made)
        return made.outputs[0]

    largest = add("Max", add("ReduceMax", add("Abs", activations), axis, keepdims=1), least)
    rows = add("QuantizeLinear", add("Div", activations, largest), scale, zero)
    # The row's scale comes after the product, which takes one for all rows.
    product = add("MatMulIntegerToFloat", rows, stored, scale, channels, zero, domain=_DOMAIN)
    result = add("Mul", product, largest)
    if len(node.inputs) > 2:
        result = add("Add", result, node.inputs[2])
    onnx_ir.convenience.replace_nodes_and_values(graph, node, [node], nodes, [output], [result])


# Any: a scalar or an array of NumPy.
def _initializer(graph: onnx_ir.Graph, name: str, values: Any) -> onnx_ir.Value:
    value = onnx_ir.val(name, const_value=onnx_ir.tensor(values, name=name))
    graph.register_initializer(value)
    return value
