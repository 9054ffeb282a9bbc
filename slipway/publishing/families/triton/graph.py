"""Writes a model repository for one graph: config.pbtxt and version 1.

Triton's own back end runs the graph. The tensors of an ONNX graph are read from it. For a plan of
TensorRT, Triton fills them in when it loads it.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError
from slipway.extras import require

# Names of files that Triton's back ends look for, by the graph's suffix.
BACKENDS: Final[Mapping[str, tuple[str, str]]] = {
    ".onnx": ("onnxruntime", "model.onnx"),
    ".plan": ("tensorrt", "model.plan"),
}

# ONNX Runtime's names of types -> Triton's.
_TYPES: Final = {
    "bfloat16": "TYPE_BF16",
    "bool": "TYPE_BOOL",
    "double": "TYPE_FP64",
    "float": "TYPE_FP32",
    "float16": "TYPE_FP16",
    "int8": "TYPE_INT8",
    "int16": "TYPE_INT16",
    "int32": "TYPE_INT32",
    "int64": "TYPE_INT64",
    "string": "TYPE_STRING",
    "uint8": "TYPE_UINT8",
    "uint16": "TYPE_UINT16",
    "uint32": "TYPE_UINT32",
    "uint64": "TYPE_UINT64",
}


@dataclass(frozen=True)
class Tensor:
    """An input or an output; a size is -1 where a request decides."""

    name: str
    data_type: str
    dims: Sequence[int]


@dataclass(frozen=True)
class Tensors:
    """The tensors of a graph, with the dimension of the batch."""

    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]


@dataclass(frozen=True)
class Serving:
    """How Triton serves the graph.

    `max_batch_size` is 0 where the graph has no dimension for batches. `instance_group_count` is of
    each GPU, or of a host without one. `warmup_length` is the size of each dimension that requests
    decide, in the requests of the warm-up; None warms up only a graph that has no such dimension.
    """

    max_batch_size: int
    max_batch_delay_microseconds: int
    instance_group_count: int
    warmup_length: int | None


def write_repository(directory: Path, name: str, graph: Path, serving: Serving) -> None:
    """Writes the repository into a directory that does not exist yet.

    Files of external data are copied as well. Raises `UserError`, and writes nothing, if the file
    is no graph, or cannot be served so.
    """
    known = BACKENDS.get(graph.suffix)
    if known is None or not graph.is_file():
        raise _refused(
            f"{graph} is no graph" if graph.exists() else f"there is no file {graph}",
            f"Name a file that ends in {' or '.join(BACKENDS)}.",
        )
    backend, file_name = known
    tensors = _read_onnx(graph) if backend == "onnxruntime" else None
    if tensors is not None and serving.max_batch_size > 0:
        _check_batches(graph, tensors)
    version = directory / name / "1"
    version.mkdir(parents=True)
    text = config(name, backend, tensors, serving)
    (directory / name / "config.pbtxt").write_text(text, encoding="utf-8")
    shutil.copy2(graph, version / file_name)
    for name_of_data in _external_data(graph) if tensors is not None else ():
        (version / name_of_data).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(graph.parent / name_of_data, version / name_of_data)


def _external_data(graph: Path) -> Sequence[str]:
    """Returns the files that hold an ONNX graph's weights, relative to its directory.

    Source: `StringStringEntryProto` in onnx.proto. Field 1 is the key, here `location`; field 2 is
    the value, a string of one length byte below 128.
    """
    content = graph.read_bytes()
    found = (
        content[entry.end() : entry.end() + entry[1][0]]
        for entry in re.finditer(rb"\x0a\x08location\x12([\x01-\x7f])", content, re.DOTALL)
    )
    return list(dict.fromkeys(name.decode() for name in found))


def config(name: str, backend: str, tensors: Tensors | None, serving: Serving) -> str:
    """Returns config.pbtxt; without `tensors` Triton fills them in."""
    return "".join(f"{line}\n" for line in _config_lines(name, backend, tensors, serving))


def _config_lines(
    name: str, backend: str, tensors: Tensors | None, serving: Serving
) -> Iterator[str]:
    batches = serving.max_batch_size > 0
    yield f"name: {json.dumps(name)}"
    yield f"backend: {json.dumps(backend)}"
    yield f"max_batch_size: {serving.max_batch_size}"
    for kind, found in (("input", tensors.inputs), ("output", tensors.outputs)) if tensors else ():
        for tensor in found:
            dims = ", ".join(map(str, _request_dims(tensor, serving)))
            yield (
                f"{kind} {{ name: {json.dumps(tensor.name)} data_type: {tensor.data_type} "
                f"dims: [ {dims} ] }}"
            )
    if batches:
        # A queue policy would make requests wait: see the guide of Triton.
        delay = serving.max_batch_delay_microseconds
        yield f"dynamic_batching {{ max_queue_delay_microseconds: {delay} }}"
    # Without a kind, Triton takes the GPUs that are there, or the host.
    yield f"instance_group {{ count: {serving.instance_group_count} }}"
    # Otherwise an answer of earlier files could be returned.
    yield "response_cache { enable: false }"
    if tensors is not None:
        for rows in dict.fromkeys((1, serving.max_batch_size)) if batches else (1,):
            yield from _warmup_lines(rows, tensors.inputs, serving)


def _warmup_lines(rows: int, inputs: Sequence[Tensor], serving: Serving) -> Iterator[str]:
    """Yields a request of zeros, or nothing if it needs a length that nobody gave."""
    shapes = [
        [serving.warmup_length if size < 0 else size for size in _request_dims(each, serving)]
        for each in inputs
    ]
    if any(size is None for shape in shapes for size in shape):
        return
    yield "model_warmup {"
    yield f'  name: "{rows} together"'
    yield f"  batch_size: {rows if serving.max_batch_size > 0 else 0}"
    for tensor, shape in zip(inputs, shapes, strict=True):
        dims = ", ".join(map(str, shape))
        yield (
            f"  inputs {{ key: {json.dumps(tensor.name)} value {{ data_type: {tensor.data_type} "
            f"dims: [ {dims} ] zero_data: true }} }}"
        )
    yield "}"


def _request_dims(tensor: Tensor, serving: Serving) -> Sequence[int]:
    """Returns the sizes that config.pbtxt has: without the dimension of the batch."""
    return tensor.dims[1:] if serving.max_batch_size > 0 else tensor.dims


def _check_batches(graph: Path, tensors: Tensors) -> None:
    fixed = [
        each.name
        for each in (*tensors.inputs, *tensors.outputs)
        if not each.dims or each.dims[0] >= 0
    ]
    if fixed:
        raise _refused(
            f"{graph} has no dimension for batches: {', '.join(fixed)} begins with a fixed size",
            "Use `--max-batch-size 0`, or export the graph with a dynamic first dimension.",
        )


def _read_onnx(graph: Path) -> Tensors:
    require("triton", "reading an ONNX graph")
    # Before the import: it would look up its maker's host.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(
            str(graph), options, providers=["CPUExecutionProvider"]
        )
    # ONNX Runtime's errors have no class in common but this one.
    except Exception as error:
        raise _refused(
            f"ONNX Runtime cannot load {graph}: {error}",
            "Export the graph again. Files of external data must lie beside it.",
        ) from None
    return Tensors(
        [_tensor(graph, each) for each in session.get_inputs()],
        [_tensor(graph, each) for each in session.get_outputs()],
    )


# Any: ONNX Runtime has no types.
def _tensor(graph: Path, found: Any) -> Tensor:
    kind = found.type.removeprefix("tensor(").removesuffix(")")
    if kind not in _TYPES:
        raise _refused(
            f"{found.name} of {graph} is a {found.type}, which Triton cannot take from a request",
            "Export the graph with tensors as inputs and outputs.",
        )
    dims = [size if isinstance(size, int) and size >= 0 else -1 for size in found.shape]
    return Tensor(found.name, _TYPES[kind], dims)


def _refused(message: str, remedy: str) -> UserError:
    return UserError([Problem(Code.TRITON_MODEL, Kind.VALUE, message, remedy)])
