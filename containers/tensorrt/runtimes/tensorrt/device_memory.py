"""The GPU, its memory, and the copies and calls that it carries out one after the other.

Addresses are plain numbers here and in all calls. CUDA's bindings take an array as well, but they
ask any object for its value as a number first, and an array of one element may have one.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cuda.bindings import runtime

from containers.serving.predictor import ModelLostError

# What cudaMalloc keeps to, and TensorRT asks of every tensor's address.
ALIGNMENT_BYTES: Final = 256

# One process, one GPU: an instance with several serves with the first.
_DEVICE: Final = 0


class DeviceError(ModelLostError):
    """CUDA refused a call, or says that work before it failed; the GPU cannot be relied on after.

    Attributes:
        code: CUDA's name of the error ("cudaErrorMemoryAllocation").
    """

    def __init__(self, call: str, code: str, meaning: str) -> None:
        super().__init__(f"{call}: {meaning} ({code})")
        self.code = code


@dataclass(frozen=True)
class Gpu:
    """The GPU that this process uses.

    Attributes:
        name: as NVIDIA calls it ("NVIDIA A10G").
        compute_capability: as targets are called ("sm86").
    """

    name: str
    compute_capability: str


@dataclass(frozen=True)
class Box:
    """A place in memory that is seen as planes of lines.

    Attributes:
        address: of the first line of the first plane.
        line_bytes: from one line to the next.
        plane_lines: from one plane to the next.
        line: the first line that is meant, in every plane.
        byte: the first byte that is meant, in every line.
    """

    address: int
    line_bytes: int
    plane_lines: int
    line: int = 0
    byte: int = 0


def use_gpu() -> Gpu:
    """Makes the machine's first GPU that of this thread, and returns it.

    Raises:
        DeviceError: there is none, or its driver is missing or too old.
    """
    _call(runtime.cudaSetDevice, _DEVICE)
    properties = _call(runtime.cudaGetDeviceProperties, _DEVICE)
    return Gpu(
        name=properties.name.split(b"\0")[0].decode(),
        compute_capability=f"sm{properties.major}{properties.minor}",
    )


def free_bytes() -> int:
    """Returns how much memory of the GPU nobody has."""
    free, _ = _call(runtime.cudaMemGetInfo)
    return int(free)


def allocate(size_bytes: int) -> int:
    """Returns the address of new memory, which is the process's to its end.

    Raises:
        DeviceError: the GPU has not got that much left.
    """
    return int(_call(runtime.cudaMalloc, size_bytes))


def aligned(size_bytes: int) -> int:
    """Returns the size, rounded up so that what follows is aligned."""
    return -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES


class Stream:
    """Work for the GPU in order: a call returns before it is done, `synchronize` after.

    Host memory must stay as it is, and where it is, until then. It need not be page-locked: a copy
    of pageable memory is a little slower and otherwise the same.
    """

    def __init__(self) -> None:
        # A stream of its own, which does not wait for CUDA's default stream: TensorRT advises it.
        self._stream = _call(runtime.cudaStreamCreateWithFlags, runtime.cudaStreamNonBlocking)

    @property
    def handle(self) -> int:
        """The stream as TensorRT takes it."""
        return int(self._stream)

    def upload(self, source: npt.NDArray[np.uint8], address: int) -> None:
        """Copies an array's bytes to the GPU; the array is contiguous."""
        _call(
            runtime.cudaMemcpyAsync,
            address,
            source.ctypes.data,
            source.nbytes,
            runtime.cudaMemcpyKind.cudaMemcpyHostToDevice,
            self._stream,
        )

    def download(self, address: int, destination: npt.NDArray[np.uint8]) -> None:
        """Copies bytes of the GPU into an array, which is contiguous."""
        _call(
            runtime.cudaMemcpyAsync,
            destination.ctypes.data,
            address,
            destination.nbytes,
            runtime.cudaMemcpyKind.cudaMemcpyDeviceToHost,
            self._stream,
        )

    def copy(self, source: Box, destination: Box, *, bytes_: int, lines: int, planes: int) -> None:
        """Copies so many bytes of so many lines of so many planes within the GPU.

        The two places do not overlap.
        """
        parameters = runtime.cudaMemcpy3DParms()
        parameters.srcPtr = _pitched(source)
        parameters.srcPos = runtime.make_cudaPos(source.byte, source.line, 0)
        parameters.dstPtr = _pitched(destination)
        parameters.dstPos = runtime.make_cudaPos(destination.byte, destination.line, 0)
        # Without a CUDA array among the two, a width is in bytes.
        parameters.extent = runtime.make_cudaExtent(bytes_, lines, planes)
        parameters.kind = runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
        _call(runtime.cudaMemcpy3DAsync, parameters, self._stream)

    def clear(self, address: int, *, pitch_bytes: int, bytes_: int, lines: int) -> None:
        """Puts zeros into so many bytes of lines that lie `pitch_bytes` apart."""
        _call(runtime.cudaMemset2DAsync, address, pitch_bytes, 0, bytes_, lines, self._stream)

    def synchronize(self) -> None:
        """Returns when all is done that was asked for.

        Raises:
            DeviceError: some of it failed.
        """
        _call(runtime.cudaStreamSynchronize, self._stream)


def _pitched(box: Box) -> Any:  # Any: the bindings carry no types
    return runtime.make_cudaPitchedPtr(box.address, box.line_bytes, box.line_bytes, box.plane_lines)


def _call(function: Any, *arguments: Any) -> Any:  # Any: the bindings carry no types
    """Calls CUDA; returns what comes after the error code: nothing, a value, or several."""
    error, *values = function(*arguments)
    if error != runtime.cudaError_t.cudaSuccess:
        _, meaning = runtime.cudaGetErrorString(error)
        raise DeviceError(function.__name__, error.name, meaning.decode())
    return values[0] if len(values) == 1 else tuple(values)
