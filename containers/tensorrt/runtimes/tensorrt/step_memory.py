"""The memory of tokens and logits, on the host and on the GPU."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import tensorrt as trt

from containers.tensorrt.engine_metadata import EngineMetadata, candidate_count
from containers.tensorrt.runtimes.tensorrt.device_memory import Stream, aligned, allocate
from containers.tensorrt.runtimes.tensorrt.engine import Engine
from containers.tensorrt.stepping import (
    CANDIDATE_LOGITS,
    CANDIDATE_TOKENS,
    LOGITS,
    TOTAL_WEIGHTS,
    Candidates,
    Float32Array,
)

FLOAT_TYPES: Final[dict[str, np.dtype[np.floating[Any]]]] = {
    "fp16": np.dtype(np.float16),
    "fp32": np.dtype(np.float32),
}
_TOKEN_BYTES: Final = np.dtype(np.int64).itemsize
_VALUE_BYTES: Final = np.dtype(np.float32).itemsize


def token_bytes(counts: Iterable[int]) -> int:
    return sum(aligned(count * _TOKEN_BYTES) for count in counts)


class TokenMemory:
    """Memory for the inputs that change with each step; `size_bytes` is of `token_bytes`."""

    def __init__(self, size_bytes: int, stream: Stream) -> None:
        self._stream = stream
        self._address = allocate(size_bytes)
        self._host = np.zeros(size_bytes, dtype=np.uint8)

    def bind(
        self,
        engine: Engine,
        context: trt.IExecutionContext,
        inputs: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Copies all inputs with one copy; the stream must be synchronised before the next call."""
        end = 0
        for name, array in inputs.items():
            start = aligned(end)
            end = start + array.nbytes
            self._host[start:end].view(array.dtype)[:] = array.ravel()
            engine.bind(context, [(name, self._address + start)], array.shape)
        self._stream.upload(self._host[:end], self._address)


def logits_bytes(metadata: EngineMetadata) -> int:
    return metadata.max_batch_size * metadata.vocabulary_size * metadata.value_bytes


class LogitsMemory:
    def __init__(self, metadata: EngineMetadata, stream: Stream) -> None:
        self._stream = stream
        self._vocabulary_size = metadata.vocabulary_size
        self._float_type = FLOAT_TYPES[metadata.precision]
        self.address: Final = allocate(logits_bytes(metadata))
        self._host = np.zeros(logits_bytes(metadata), dtype=np.uint8)

    def read(self, first: int, end: int) -> Float32Array:
        """Waits for the stream; returns the logits of rows, [rows, vocabulary]."""
        row_bytes = self._vocabulary_size * self._float_type.itemsize
        logits = self._host[first * row_bytes : end * row_bytes]
        self._stream.download(self.address + first * row_bytes, logits)
        self._stream.synchronize()
        typed = logits.view(self._float_type).reshape(end - first, self._vocabulary_size)
        return typed.astype(np.float32)


@dataclass(frozen=True)
class DeviceLogits:
    """A step's `Logits`: candidates on the host, and all logits, in `memory`, on the GPU."""

    memory: LogitsMemory
    token_ids: npt.NDArray[np.int32]  # [rows, count], in any order
    logits: Float32Array  # of these tokens
    total_weights: Float32Array  # [rows]
    is_whole: bool

    def likeliest(self) -> Sequence[int]:
        """Returns the token of the greatest logit in each row, the lowest of several."""
        is_greatest = self.logits == self.logits.max(axis=1, keepdims=True)
        none = np.iinfo(np.int32).max
        tokens: list[int] = np.where(is_greatest, self.token_ids, none).min(axis=1).tolist()
        return tokens

    def of_rows(self, first: int, end: int) -> Float32Array:
        return self.memory.read(first, end)

    def candidates(self, row: int) -> Candidates:
        token_ids, logits = self.token_ids[row], self.logits[row]
        # TensorRT does not say in which order equal values come.
        order = np.lexsort((token_ids, -logits))
        return Candidates(
            token_ids[order].astype(np.int64),
            logits[order],
            float(self.total_weights[row]),
            self.is_whole,
        )


class CandidateMemory:
    def __init__(self, metadata: EngineMetadata, stream: Stream) -> None:
        self._stream = stream
        self._count = candidate_count(metadata.vocabulary_size)
        self._is_whole = self._count == metadata.vocabulary_size
        self._logits = LogitsMemory(metadata, stream)
        size_bytes = candidate_bytes(metadata)
        self._address = allocate(size_bytes)
        self._host = np.zeros(size_bytes, dtype=np.uint8)

    def addresses(self, rows: int) -> dict[str, int]:
        """Returns the addresses of candidates and logits, by the names of their tensors."""
        names = (CANDIDATE_TOKENS, CANDIDATE_LOGITS, TOTAL_WEIGHTS)
        starts = [self._address + start for start, _ in _places(rows, self._count)]
        return {LOGITS: self._logits.address} | dict(zip(names, starts, strict=True))

    def read(self, rows: int) -> DeviceLogits:
        """Waits for the stream; copies the candidates, and leaves all logits on the GPU."""
        tokens, logits, weights = _places(rows, self._count)
        _, end = weights
        self._stream.download(self._address, self._host[:end])
        self._stream.synchronize()
        # A copy: the next step writes here.
        copied = self._host[:end].copy()
        return DeviceLogits(
            self._logits,
            copied[slice(*tokens)].view(np.int32).reshape(rows, self._count),
            copied[slice(*logits)].view(np.float32).reshape(rows, self._count),
            copied[slice(*weights)].view(np.float32),
            is_whole=self._is_whole,
        )


def candidate_bytes(metadata: EngineMetadata) -> int:
    places = _places(metadata.max_batch_size, candidate_count(metadata.vocabulary_size))
    return places[-1][1]


def _places(rows: int, count: int) -> list[tuple[int, int]]:
    """Returns the first byte and the end of tokens, logits and total weights, each aligned."""
    places, end = [], 0
    for values in (rows * count, rows * count, rows):
        start = aligned(end)
        end = start + values * _VALUE_BYTES
        places.append((start, end))
    return places
