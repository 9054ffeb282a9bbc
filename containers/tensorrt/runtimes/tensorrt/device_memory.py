"""The GPU, its memory, and the copies and calls that it carries out one after the other.

Addresses are plain numbers here and in all calls. CUDA's bindings accept an array as well. They
first ask any object for its value as a number, however, and an array of one element may have one.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cuda.bindings import runtime

from containers.serving.predictor import ModelLostError
from containers.tensorrt.engine_metadata import Gpu

# The alignment of cudaMalloc, which TensorRT requires of every tensor's address.
ALIGNMENT_BYTES: Final = 256


class DeviceError(ModelLostError):
    """CUDA refused a call, or reports that earlier work failed; the GPU is lost."""


@dataclass(frozen=True)
class Box:
    """A range of memory, seen as planes of lines."""

    address: int  # of the first line of the first plane
    line_bytes: int  # from one line to the next
    plane_lines: int  # from one plane to the next
    line: int = 0  # first line of the range in every plane
    byte: int = 0  # first byte of the range in every line


def use_gpu(device: int = 0) -> Gpu:
    """Makes a GPU of the machine the current GPU of this thread, and returns it."""
    _call(runtime.cudaSetDevice, device)
    return Gpu.of(_call(runtime.cudaGetDeviceProperties, device))


def free_bytes() -> int:
    free, _ = _call(runtime.cudaMemGetInfo)
    return int(free)


def allocate(size_bytes: int) -> int:
    """Returns the address of new memory, which is never freed before the process ends."""
    return int(_call(runtime.cudaMalloc, size_bytes))


def aligned(size_bytes: int) -> int:
    """Returns the size rounded up, so that memory after it is aligned."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class Stream:
    """Ordered work for the GPU: calls return before their work is done; `synchronize` waits.

    Until then, host memory must neither move nor change. It need not be page-locked: a copy of
    pageable memory is a little slower and otherwise the same.
    """

    def __init__(self) -> None:
        # A separate stream does not wait for CUDA's default stream, as TensorRT advises.
        self._stream = _call(runtime.cudaStreamCreateWithFlags, runtime.cudaStreamNonBlocking)

    @property
    def handle(self) -> int:
        """Returns the stream in the form that TensorRT takes."""
        return int(self._stream)

    def upload(self, source: npt.NDArray[np.uint8], address: int) -> None:
        """Copies an array's bytes to the GPU; the array must be contiguous."""
        _call(
            runtime.cudaMemcpyAsync,
            address,
            source.ctypes.data,
            source.nbytes,
            runtime.cudaMemcpyKind.cudaMemcpyHostToDevice,
            self._stream,
        )

    def download(self, address: int, destination: npt.NDArray[np.uint8]) -> None:
        """Copies bytes of the GPU into an array, which must be contiguous."""
        _call(
            runtime.cudaMemcpyAsync,
            destination.ctypes.data,
            address,
            destination.nbytes,
            runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost,
            self._stream,
        )

    def copy(self, source: Box, destination: Box, *, bytes_: int, lines: int, planes: int) -> None:
        """Copies a block within the GPU; the two must not overlap."""
        parameters = runtime.cudaMemcpy3DParms()
        parameters.srcPtr = _pitched(source)
        parameters.srcPos = runtime.make_cudaPos(source.byte, source.line, 0)
        parameters.dstPtr = _pitched(destination)
        parameters.dstPos = runtime.make_cudaPos(destination.byte, destination.line, 0)
        # Without a CUDA array as an end of the copy, the width is in bytes.
        parameters.extent = runtime.make_cudaExtent(bytes_, lines, planes)
        parameters.kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
        _call(runtime.cudaMemcpy3DAsync, parameters, self._stream)

    def clear(self, address: int, *, pitch_bytes: int, bytes_: int, lines: int) -> None:
        """Writes zeros at the start of several lines, `pitch_bytes` apart."""
        _call(runtime.cudaMemset2DAsync, address, pitch_bytes, 0, bytes_, lines, self._stream)

    def synchronize(self) -> None:
        """Waits until all work of the stream is done; a `DeviceError` says that some failed."""
        _call(runtime.cudaStreamSynchronize, self._stream)


def _pitched(box: Box) -> Any:  # Any: the bindings carry no types
    return runtime.make_cudaPitchedPtr(box.address, box.line_bytes, box.line_bytes, box.plane_lines)


def _call(function: Any, *arguments: Any) -> Any:  # Any: the bindings carry no types
    """Calls CUDA; returns the values after the error code: nothing, one value, or several."""
    error, *values = function(*arguments)
    if error != runtime.cudaError_t.cudaSuccess:
        _, meaning = runtime.cudaGetErrorString(error)
        raise DeviceError(f"{function.__name__}: {meaning.decode()} ({error.name})")
    return values[0] if len(values) == 1 else tuple(values)
