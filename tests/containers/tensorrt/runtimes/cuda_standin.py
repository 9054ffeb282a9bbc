"""A stand-in for `cuda.bindings.runtime`: the calls that the container makes, held to their rules.

Device memory is arrays at made-up addresses. Everything asynchronous waits in its stream's queue
until `cudaStreamSynchronize`, so that nothing is seen early: new memory and whatever a copy to the
host will overwrite are filled with ones, which are NaN as floating point. A call that CUDA's
documentation forbids raises `ContractError`, where a GPU would compute something wrong or crash.
"""

# The names are CUDA's.
# ruff: noqa: N801, N802, N803, N815

import ctypes
import enum
import functools
from types import SimpleNamespace

import numpy as np

# No process has memory of its own up there.
_FIRST_ADDRESS = 1 << 60
# cudaMalloc's alignment, and room between two allocations, which nobody may touch.
_ALIGNMENT = 256
_GAP = 4096
_GARBAGE = 0xFF


class ContractError(AssertionError):
    """The documentation forbids what was done."""


class cudaError_t(enum.IntEnum):
    cudaSuccess = 0
    cudaErrorMemoryAllocation = 2
    cudaErrorInsufficientDriver = 35
    cudaErrorNoDevice = 100
    cudaErrorIllegalAddress = 700


_MEANINGS = {
    cudaError_t.cudaErrorMemoryAllocation: b"out of memory",
    cudaError_t.cudaErrorInsufficientDriver: (
        b"CUDA driver version is insufficient for CUDA runtime version"
    ),
    cudaError_t.cudaErrorNoDevice: b"no CUDA-capable device is detected",
    cudaError_t.cudaErrorIllegalAddress: b"an illegal memory access was encountered",
}


class cudaMemcpyKind(enum.IntEnum):
    cudaMemcpyHostToHost = 0
    cudaMemcpyHostToDevice = 1
    cudaMemcpyDeviceToHost = 2
    cudaMemcpyDeviceToDevice = 3


class cudaMemcpy3DParms(SimpleNamespace):
    pass


class CudaError(Exception):
    """Makes a function return an error code."""


def cuda_call(results):
    """A function that returns an error code first, then its results; None for each after an error.

    Its error is the one that a test asked for, if there is one.
    """

    def of(function):
        name = function.__name__

        @functools.wraps(function)
        def call(self, *arguments):
            self.calls.append(name)
            try:
                if name in self.failures:
                    raise CudaError(self.failures[name])
                return cudaError_t.cudaSuccess, *(function(self, *arguments) or ())
            except CudaError as error:
                return error.args[0], *[None] * results

        return call

    return of


class CudaStandIn:
    """One GPU, or a machine without."""

    cudaError_t = cudaError_t
    cudaMemcpyKind = cudaMemcpyKind
    cudaMemcpy3DParms = cudaMemcpy3DParms
    cudaStreamNonBlocking = 1

    def __init__(self, *, name="NVIDIA A10G", capability=(8, 6), memory_bytes=1 << 30):
        self.name = name
        self.capability = capability
        self.memory_bytes = memory_bytes
        # What every call to a function returns instead of working.
        self.failures = {}
        self.calls = []
        # The sizes of copies to the host.
        self.downloads = []
        # By address.
        self._allocations = {}
        self._reserved_bytes = 0
        self._next_address = _FIRST_ADDRESS
        self._device_is_set = False
        self._queues = {}

    # What the other stand-in and the tests use.

    def reserve(self, size_bytes):
        """Takes memory as TensorRT does for itself; false where there is not enough."""
        if size_bytes > self.free_bytes:
            return False
        self._reserved_bytes += size_bytes
        return True

    @property
    def free_bytes(self):
        used = sum(content.nbytes for content in self._allocations.values())
        return self.memory_bytes - self._reserved_bytes - used

    def memory(self, address, size_bytes):
        """A view of device memory, which lies in one allocation."""
        for start, content in self._allocations.items():
            offset = address - start
            if offset >= 0 and offset + size_bytes <= content.nbytes:
                return content[offset : offset + size_bytes]
        raise ContractError(f"{size_bytes} bytes at {address:#x} are in no allocation")

    def enqueue(self, stream, work):
        self._queue(stream).append(work)

    # CUDA's functions: an error code first, then what they give.

    @cuda_call(results=0)
    def cudaSetDevice(self, device):
        assert device == 0
        self._device_is_set = True

    @cuda_call(results=1)
    def cudaGetDeviceProperties(self, device):
        major, minor = self.capability
        # The field has 256 characters.
        name = self.name.encode().ljust(256, b"\0")
        return [SimpleNamespace(name=name, major=major, minor=minor)]

    def cudaGetErrorString(self, error):
        return cudaError_t.cudaSuccess, _MEANINGS[error]

    @cuda_call(results=2)
    def cudaMemGetInfo(self):
        return self.free_bytes, self.memory_bytes

    @cuda_call(results=1)
    def cudaMalloc(self, size):
        self._check_device()
        if size <= 0:
            raise ContractError(f"an allocation of {size} bytes")
        if size > self.free_bytes:
            raise CudaError(cudaError_t.cudaErrorMemoryAllocation)
        address = self._next_address
        self._next_address += -(-(size + _GAP) // _ALIGNMENT) * _ALIGNMENT
        self._allocations[address] = np.full(size, _GARBAGE, dtype=np.uint8)
        return [address]

    @cuda_call(results=1)
    def cudaStreamCreateWithFlags(self, flags):
        self._check_device()
        assert flags == self.cudaStreamNonBlocking
        handle = 1000 + len(self._queues)
        self._queues[handle] = []
        return [handle]

    @cuda_call(results=0)
    def cudaStreamSynchronize(self, stream):
        queue = self._queue(stream)
        while queue:
            queue.pop(0)()

    @cuda_call(results=0)
    def cudaMemcpyAsync(self, dst, src, count, kind, stream):
        source = self._side(src, count, kind, from_device=cudaMemcpyKind.cudaMemcpyDeviceToHost)
        target = self._side(dst, count, kind, from_device=cudaMemcpyKind.cudaMemcpyHostToDevice)
        if kind is cudaMemcpyKind.cudaMemcpyDeviceToHost:
            target[:] = _GARBAGE
            self.downloads.append(count)
        self.enqueue(stream, lambda: np.copyto(target, source))

    @cuda_call(results=0)
    def cudaMemset2DAsync(self, devPtr, pitch, value, width, height, stream):
        if width > pitch:
            raise ContractError(f"lines of {width} bytes that lie {pitch} apart")
        lines = [self.memory(devPtr + line * pitch, width) for line in range(height)]

        def fill():
            for line in lines:
                line[:] = value

        self.enqueue(stream, fill)

    @cuda_call(results=0)
    def cudaMemcpy3DAsync(self, p, stream):
        if p.kind is not cudaMemcpyKind.cudaMemcpyDeviceToDevice:
            raise ContractError(f"{p.kind!r} between two places of the device")
        source = self._lines(p.srcPtr, p.srcPos, p.extent)
        target = self._lines(p.dstPtr, p.dstPos, p.extent)
        if any(np.shares_memory(source[0].base, line) for line in target[:1]):
            raise ContractError("the places of a copy are in one allocation")

        def copy():
            for from_line, to_line in zip(source, target, strict=True):
                to_line[:] = from_line

        self.enqueue(stream, copy)

    def make_cudaPitchedPtr(self, d, p, xsz, ysz):
        return SimpleNamespace(ptr=d, pitch=p, xsize=xsz, ysize=ysz)

    def make_cudaPos(self, x, y, z):
        return SimpleNamespace(x=x, y=y, z=z)

    def make_cudaExtent(self, w, h, d):
        return SimpleNamespace(width=w, height=h, depth=d)

    # The rules.

    def _check_device(self):
        if not self._device_is_set:
            raise ContractError("no device was chosen")

    def _queue(self, stream):
        if int(stream) not in self._queues:  # type: ignore[call-overload]
            raise ContractError(
                f"{stream!r} is not a stream that was made; 0 is the default stream"
            )
        return self._queues[int(stream)]  # type: ignore[call-overload]

    def _side(self, address, count, kind, *, from_device):
        """One side of a copy: device memory for this kind, else the host's."""
        if type(address) is not int:
            raise ContractError(f"an address is a number, not {address!r}")
        if kind not in (
            cudaMemcpyKind.cudaMemcpyHostToDevice,
            cudaMemcpyKind.cudaMemcpyDeviceToHost,
        ):
            raise ContractError(f"{kind!r} between the host and the device")
        if kind is from_device:
            return self.memory(address, count)
        if address >= _FIRST_ADDRESS:
            raise ContractError(f"{address:#x} is device memory, and {kind.name} means the host's")
        return np.frombuffer((ctypes.c_uint8 * count).from_address(address), dtype=np.uint8)

    def _lines(self, pointer, position, extent):
        if position.x + extent.width > pointer.pitch:
            raise ContractError(f"{extent.width} bytes from {position.x} of {pointer.pitch}")
        if position.y + extent.height > pointer.ysize:
            raise ContractError(f"{extent.height} lines from {position.y} of {pointer.ysize}")
        if min(extent.width, extent.height, extent.depth) < 1:
            raise ContractError(f"nothing to copy: {extent}")
        assert position.z == 0
        # All that was described exists.
        self.memory(pointer.ptr, pointer.pitch * pointer.ysize * extent.depth)
        return [
            self.memory(
                pointer.ptr
                + (plane * pointer.ysize + position.y + line) * pointer.pitch
                + position.x,
                extent.width,
            )
            for plane in range(extent.depth)
            for line in range(extent.height)
        ]
