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
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

CHECKPOINT: Final = "model.safetensors"
# Initialisers up to this size (shapes, scalars, constants of the graph itself) stay in the graph.
LARGEST_INLINE_INITIALISER_BYTES: Final = 256

_ONNX_TYPES: Final = {
    "F16": onnx.TensorProto.FLOAT16,
    "BF16": onnx.TensorProto.BFLOAT16,
    "F32": onnx.TensorProto.FLOAT,
}


@dataclass(frozen=True)
class _StoredTensor:
    """The position of a tensor's bytes in a safetensors file, counted from the file's start."""

    name: str
    onnx_type: int
    shape: tuple[int, ...]
    offset: int
    length: int

    def reference(self, name: str) -> onnx.TensorProto:
        """Returns an initialiser of that name that refers to the file instead of holding bytes."""
        made = onnx.TensorProto(
            name=name,
            data_type=self.onnx_type,
            dims=self.shape,
            data_location=onnx.TensorProto.EXTERNAL,
        )
        made.external_data.add(key="location", value=CHECKPOINT)
        made.external_data.add(key="offset", value=str(self.offset))
        made.external_data.add(key="length", value=str(self.length))
        return made


def refer_to_safetensors(graph_path: Path, *, computed: Sequence[str] = ()) -> int:
    """Replaces a graph's weights by references into model.safetensors beside it, in place.

    Half-precision tensors get a cast to float32, which ONNX Runtime folds away when it loads the
    graph. Weights are matched by their values, because the exporter renames tensors, keeps only one
    of several tied tensors, and stores some small tensors transposed.

    Args:
        graph_path: A graph whose float32 weights are inside the file.
        computed: Ends of the names of tensors that the export computes from weights, such as T5's
            table of distances. They are in no checkpoint and stay in the graph.

    Returns:
        The number of weights that are now references.

    Raises:
        ValueError: A weight is not in the checkpoint.
    """
    model = onnx.load_model(str(graph_path), load_external_data=False)
    stored = _stored_tensors(graph_path.with_name(CHECKPOINT))
    inline: list[onnx.TensorProto] = []
    external: dict[str, onnx.TensorProto] = {}
    conversions: list[onnx.NodeProto] = []
    replaced = 0
    for initialiser in model.graph.initializer:
        values = onnx.numpy_helper.to_array(initialiser)
        is_small = values.nbytes <= LARGEST_INLINE_INITIALISER_BYTES
        if is_small or initialiser.name.endswith(tuple(computed)):
            inline.append(initialiser)
            continue
        found, transposed = stored.get(_fingerprint(values), []), False
        if not found and values.ndim == 2:
            found, transposed = stored.get(_fingerprint(values.T), []), True
        if not found:
            raise ValueError(
                f"weight {initialiser.name} {list(values.shape)} of {graph_path} is not in "
                f"{CHECKPOINT}: export the graph from that checkpoint, loaded as float32"
            )
        # Equal tensors, such as biases that are all zero, are told apart by name if possible.
        tensor = next((t for t in found if initialiser.name.endswith(t.name)), found[0])
        nodes = _conversion(tensor, initialiser.name, transposed=transposed)
        conversions.extend(nodes)
        name = nodes[0].input[0] if nodes else initialiser.name
        external[name] = tensor.reference(name)
        replaced += 1
    nodes = [*conversions, *model.graph.node]
    del model.graph.initializer[:], model.graph.node[:]
    model.graph.initializer.extend([*external.values(), *inline])
    model.graph.node.extend(nodes)
    graph_path.write_bytes(model.SerializeToString(deterministic=True))
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
        onnx_type, shape = _ONNX_TYPES[entry["dtype"]], tuple(entry["shape"])
        raw = onnx.TensorProto(data_type=onnx_type, dims=shape, raw_data=content[begin:end])
        values = onnx.numpy_helper.to_array(raw).astype(np.float32)
        tensor = _StoredTensor(name, onnx_type, shape, offset=begin, length=end - begin)
        stored.setdefault(_fingerprint(values), []).append(tensor)
    return stored


def _fingerprint(values: npt.NDArray[Any]) -> str:
    """Returns an identifier of a tensor's type, shape and values."""
    digest = hashlib.sha256(f"{values.dtype} {values.shape} ".encode())
    digest.update(np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
