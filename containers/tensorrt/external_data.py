"""Makes an ONNX graph read its weights from the safetensors checkpoint that lies beside it.

ONNX external data is a file, an offset and a length. A safetensors file stores each tensor as plain
bytes at an offset. One copy of the weights therefore serves both formats, and the graph has a few
tens of kilobytes. ONNX Runtime must be given such a graph by path, not as bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

# Initialisers up to this size (shapes, scalars, constants of the graph itself) stay in the graph.
LARGEST_INLINE_INITIALISER_BYTES = 256

_ONNX_TYPES = {
    "F16": onnx.TensorProto.FLOAT16,
    "BF16": onnx.TensorProto.BFLOAT16,
    "F32": onnx.TensorProto.FLOAT,
}


class ExportError(Exception):
    """The given model or files cannot become a working graph."""


@dataclass(frozen=True)
class _StoredTensor:
    """The position of a tensor's bytes in a safetensors file, counted from the file's start."""

    name: str
    onnx_type: int
    shape: tuple[int, ...]
    offset: int
    length: int


def refer_to_safetensors(
    graph_path: Path, safetensors_path: Path, *, computed: Sequence[str] = ()
) -> int:
    """Replaces a graph's weights by references into a safetensors file beside it, in place.

    Half-precision tensors get a cast to float32, which ONNX Runtime folds away when it loads the
    graph. Weights are matched by their values, because the exporter renames tensors, keeps only one
    of several tied tensors, and stores some small tensors transposed.

    Args:
        graph_path: A graph whose float32 weights are inside the file.
        safetensors_path: The checkpoint it was exported from, in the same directory.
        computed: Ends of the names of tensors that the export computes from weights, such as T5's
            table of distances. They are in no checkpoint and stay in the graph.

    Returns:
        The number of weights that are now references.

    Raises:
        ExportError: The files are in different directories, or a weight is not in the checkpoint.
    """
    if graph_path.resolve().parent != safetensors_path.resolve().parent:
        raise ExportError(
            f"{safetensors_path} is not in the directory of {graph_path}: ONNX resolves external "
            "data from the graph's directory only; put both files into one"
        )
    graph_model = onnx.load_model(str(graph_path), load_external_data=False)
    graph = graph_model.graph
    stored = _stored_tensors(safetensors_path)
    inline: list[onnx.TensorProto] = []
    external: dict[str, onnx.TensorProto] = {}
    conversions: list[onnx.NodeProto] = []
    replaced = 0
    for initialiser in graph.initializer:
        values = onnx.numpy_helper.to_array(initialiser)
        is_small = values.nbytes <= LARGEST_INLINE_INITIALISER_BYTES
        if is_small or initialiser.name.endswith(tuple(computed)):
            inline.append(initialiser)
            continue
        found, transposed = stored.get(_fingerprint(values), []), False
        if not found and values.ndim == 2:
            found, transposed = stored.get(_fingerprint(values.T), []), True
        if not found:
            raise ExportError(
                f"weight {initialiser.name} {list(values.shape)} of {graph_path} is not in "
                f"{safetensors_path}: export the graph from that checkpoint, loaded as float32"
            )
        # Equal tensors, such as biases that are all zero, are told apart by name if possible.
        tensor = next((t for t in found if initialiser.name.endswith(t.name)), found[0])
        nodes = _conversion(tensor, initialiser.name, transposed=transposed)
        conversions.extend(nodes)
        name = nodes[0].input[0] if nodes else initialiser.name
        external[name] = _external(name, tensor, safetensors_path.name)
        replaced += 1
    nodes = [*conversions, *graph.node]
    del graph.initializer[:], graph.node[:]
    graph.initializer.extend([*external.values(), *inline])
    graph.node.extend(nodes)
    graph_path.write_bytes(graph_model.SerializeToString(deterministic=True))
    return replaced


def _conversion(
    tensor: _StoredTensor, weight_name: str, *, transposed: bool
) -> list[onnx.NodeProto]:
    """Returns the nodes from a stored tensor to the float32 weight that the graph uses."""
    steps: list[tuple[str, dict[str, Any]]] = []
    if tensor.onnx_type != onnx.TensorProto.FLOAT:
        steps.append(("Cast", {"to": onnx.TensorProto.FLOAT}))
    if transposed:
        steps.append(("Transpose", {"perm": [1, 0]}))
    nodes: list[onnx.NodeProto] = []
    source = f"{tensor.name}.stored"
    for index, (operator, attributes) in enumerate(steps):
        last = index == len(steps) - 1
        target = weight_name if last else f"{weight_name}.{operator.lower()}"
        name = f"{operator.lower()}_{weight_name}"
        nodes.append(onnx.helper.make_node(operator, [source], [target], name=name, **attributes))
        source = target
    return nodes


def _stored_tensors(path: Path) -> dict[str, list[_StoredTensor]]:
    """Returns the floating-point tensors of a safetensors file, by the fingerprint of their values.

    The layout is a little-endian 64-bit header length, the header as JSON, and the tensors' bytes.
    The header's offsets are relative to these bytes.
    """
    content = path.read_bytes()
    header_bytes = int.from_bytes(content[:8], "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + header_bytes])
    stored: dict[str, list[_StoredTensor]] = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] not in _ONNX_TYPES:
            continue
        begin, end = (8 + header_bytes + offset for offset in entry["data_offsets"])
        onnx_type = _ONNX_TYPES[entry["dtype"]]
        raw = onnx.TensorProto(
            data_type=onnx_type, dims=entry["shape"], raw_data=content[begin:end]
        )
        values = onnx.numpy_helper.to_array(raw).astype(np.float32)
        tensor = _StoredTensor(
            name=name,
            onnx_type=onnx_type,
            shape=tuple(entry["shape"]),
            offset=begin,
            length=end - begin,
        )
        stored.setdefault(_fingerprint(values), []).append(tensor)
    return stored


def _fingerprint(values: npt.NDArray[Any]) -> str:
    """Returns an identifier of a tensor's type, shape and values."""
    digest = hashlib.sha256(f"{values.dtype} {values.shape} ".encode())
    digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()


def _external(name: str, tensor: _StoredTensor, file_name: str) -> onnx.TensorProto:
    """Returns an initialiser that refers to a file instead of holding bytes."""
    reference = onnx.TensorProto(
        name=name,
        data_type=tensor.onnx_type,
        dims=tensor.shape,
        data_location=onnx.TensorProto.EXTERNAL,
    )
    for key, value in (
        ("location", file_name),
        ("offset", str(tensor.offset)),
        ("length", str(tensor.length)),
    ):
        reference.external_data.add(key=key, value=value)
    return reference
