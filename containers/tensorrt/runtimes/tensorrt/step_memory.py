"""The memory of tokens and logits, on the host and on the GPU."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import tensorrt as trt

from containers.tensorrt.runtimes.tensorrt.device_memory import Stream, aligned, allocate
from containers.tensorrt.runtimes.tensorrt.engine import Engine
from containers.tensorrt.stepping import LOGITS, Float32Array, Int64Array

FLOAT_TYPES: Final[dict[str, np.dtype[np.floating[Any]]]] = {
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
}
_TOKEN_BYTES: Final = np.dtype(np.int64).itemsize


def token_bytes(counts: Iterable[int]) -> int:
    """Returns the bytes of inputs with these numbers of tokens."""
    return sum(aligned(count * _TOKEN_BYTES) for count in counts)


class TokenMemory:
    """Memory for the inputs of whole numbers: tokens, masks and positions.

    Args:
        size_bytes: see `token_bytes`.
        stream: carries out the copies.
    """

    def __init__(self, size_bytes: int, stream: Stream) -> None:
        self._stream = stream
        self._address = allocate(size_bytes)
        self._host = np.zeros(size_bytes, dtype=np.uint8)

    def bind(
        self, engine: Engine, context: trt.IExecutionContext, inputs: Mapping[str, Int64Array]
    ) -> None:
        """Copies all inputs with one copy, and sets their shapes and addresses.

        The stream must be synchronised before the next call.

        Args:
            engine: the engine that is about to run.
            context: runs it.
            inputs: the arrays, by name.
        """
        end = 0
        for name, array in inputs.items():
            start = aligned(end)
            end = start + array.nbytes
            self._host[start:end].view(np.int64)[:] = array.ravel()
            engine.accept(context.set_input_shape(name, array.shape), name)
            engine.accept(context.set_tensor_address(name, self._address + start), name)
        self._stream.upload(self._host[:end], self._address)


class LogitsMemory:
    """Memory for the logits of one position.

    Args:
        rows: most rows.
        vocabulary_size: logits of a row.
        precision: "fp16" or "fp32".
        stream: carries out the copies.
    """

    def __init__(self, rows: int, vocabulary_size: int, precision: str, stream: Stream) -> None:
        self._stream = stream
        self._vocabulary_size = vocabulary_size
        self._float_type = FLOAT_TYPES[precision]
        size_bytes = rows * vocabulary_size * self._float_type.itemsize
        self._address = allocate(size_bytes)
        self._host = np.zeros(size_bytes, dtype=np.uint8)

    def bind(self, engine: Engine, context: trt.IExecutionContext) -> None:
        """Sets the address of the logits."""
        engine.accept(context.set_tensor_address(LOGITS, self._address), LOGITS)

    def read(self, rows: int) -> Float32Array:
        """Waits for the stream; returns the logits, [rows, vocabulary]."""
        logits = self._host[: rows * self._vocabulary_size * self._float_type.itemsize]
        self._stream.download(self._address, logits)
        self._stream.synchronize()
        typed = logits.view(self._float_type).reshape(rows, self._vocabulary_size)
        return typed.astype(np.float32)
