"""The stand-ins refuse what NVIDIA forbids: else what runs on them would prove nothing."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.containers.tensorrt.runtimes.cuda_standin import (
    ContractError,
    CudaStandIn,
    cudaError_t,
    cudaMemcpyKind,
)
from tests.containers.tensorrt.runtimes.tensorrt_standin import Context, Engine, TensorRTStandIn
from tests.containers.tensorrt.runtimes.tensorrt_types import Arrays, ILogger

TO_DEVICE = cudaMemcpyKind.cudaMemcpyHostToDevice
TO_HOST = cudaMemcpyKind.cudaMemcpyDeviceToHost
WITHIN = cudaMemcpyKind.cudaMemcpyDeviceToDevice


class Gpu:
    """A stand-in with a stream, and calls that succeed or fail the test."""

    def __init__(self) -> None:
        self.cuda = CudaStandIn(memory_bytes=1 << 20)
        self("cudaSetDevice", 0)
        self.stream = self("cudaStreamCreateWithFlags", 1)

    def __call__(self, name: str, *arguments: Any) -> Any:
        error, *values = getattr(self.cuda, name)(*arguments)
        assert error is cudaError_t.cudaSuccess
        return values[0] if values else None

    def copy(self, **places: Any) -> None:
        """Copies 4 bytes of 2 lines of 3 planes; a place is address, pitch, plane lines, x, y."""
        parameters = self.cuda.cudaMemcpy3DParms()
        for side, (address, pitch, lines, x, y) in places.items():
            setattr(
                parameters,
                f"{side}Ptr",
                self.cuda.make_cudaPitchedPtr(address, pitch, pitch, lines),
            )
            setattr(parameters, f"{side}Pos", self.cuda.make_cudaPos(x, y, 0))
        parameters.extent = self.cuda.make_cudaExtent(4, 2, 3)
        parameters.kind = WITHIN
        self("cudaMemcpy3DAsync", parameters, self.stream)


@pytest.fixture
def gpu() -> Gpu:
    return Gpu()


def test_a_copy_is_seen_after_synchronisation_and_not_before(gpu: Gpu) -> None:
    address = gpu("cudaMalloc", 8)
    source, result = np.arange(8, dtype=np.uint8), np.zeros(8, dtype=np.uint8)
    gpu("cudaMemcpyAsync", address, source.ctypes.data, 8, TO_DEVICE, gpu.stream)
    gpu("cudaMemcpyAsync", result.ctypes.data, address, 8, TO_HOST, gpu.stream)
    assert (result == 0xFF).all()
    gpu("cudaStreamSynchronize", gpu.stream)
    assert (result == source).all()


def test_new_memory_is_not_zero(gpu: Gpu) -> None:
    assert np.isnan(gpu.cuda.memory(gpu("cudaMalloc", 8), 8).view(np.float32)).all()


def test_a_box_is_copied_line_by_line(gpu: Gpu) -> None:
    source, target = gpu("cudaMalloc", 6 * 4 * 3), gpu("cudaMalloc", 8 * 5 * 3)
    gpu.cuda.memory(source, 72)[:] = np.arange(72)
    gpu.cuda.memory(target, 120)[:] = 200
    gpu.copy(src=(source, 6, 4, 1, 2), dst=(target, 8, 5, 3, 0))
    gpu("cudaStreamSynchronize", gpu.stream)
    expected = np.full((3, 5, 8), 200)
    expected[:, 0:2, 3:7] = np.arange(72).reshape(3, 4, 6)[:, 2:4, 1:5]
    assert (gpu.cuda.memory(target, 120).reshape(3, 5, 8) == expected).all()


def test_memory_that_is_not_there_is_an_error(gpu: Gpu) -> None:
    assert gpu.cuda.cudaMalloc(1 << 21) == (cudaError_t.cudaErrorMemoryAllocation, None)
    free = gpu("cudaMemGetInfo")
    gpu("cudaMalloc", 1000)
    assert gpu("cudaMemGetInfo") == free - 1000


def _outside(gpu: Gpu) -> None:
    gpu("cudaMemset2DAsync", gpu("cudaMalloc", 64), 32, 0, 16, 3, gpu.stream)


def _between_allocations(gpu: Gpu) -> None:
    address = gpu("cudaMalloc", 256)
    gpu("cudaMalloc", 256)
    gpu.cuda.memory(address, 257)


def _freed(gpu: Gpu) -> None:
    address = gpu("cudaMalloc", 64)
    gpu("cudaFree", address)
    gpu.cuda.memory(address, 1)


def _wrong_kind(gpu: Gpu) -> None:
    source = np.zeros(8, dtype=np.uint8)
    gpu("cudaMemcpyAsync", gpu("cudaMalloc", 8), source.ctypes.data, 8, TO_HOST, gpu.stream)


def _device_memory_as_the_hosts(gpu: Gpu) -> None:
    address = gpu("cudaMalloc", 8)
    gpu("cudaMemcpyAsync", address, address, 8, TO_DEVICE, gpu.stream)


def _an_array_as_an_address(gpu: Gpu) -> None:
    source = np.zeros(8, dtype=np.uint8)
    gpu("cudaMemcpyAsync", gpu("cudaMalloc", 8), source, 8, TO_DEVICE, gpu.stream)


def _default_stream(gpu: Gpu) -> None:
    gpu("cudaMemset2DAsync", gpu("cudaMalloc", 64), 32, 0, 16, 2, 0)


def _no_device(gpu: Gpu) -> None:
    CudaStandIn().cudaMalloc(1)


def _box_wider_than_its_lines(gpu: Gpu) -> None:
    source, target = gpu("cudaMalloc", 72), gpu("cudaMalloc", 120)
    gpu.copy(src=(source, 6, 4, 3, 0), dst=(target, 8, 5, 0, 0))


def _box_of_more_lines_than_a_plane_has(gpu: Gpu) -> None:
    source, target = gpu("cudaMalloc", 72), gpu("cudaMalloc", 120)
    gpu.copy(src=(source, 6, 4, 0, 3), dst=(target, 8, 5, 0, 0))


def _box_beyond_its_memory(gpu: Gpu) -> None:
    source, target = gpu("cudaMalloc", 71), gpu("cudaMalloc", 120)
    gpu.copy(src=(source, 6, 4, 0, 0), dst=(target, 8, 5, 0, 0))


def _box_onto_itself(gpu: Gpu) -> None:
    source = gpu("cudaMalloc", 120)
    gpu.copy(src=(source, 6, 4, 0, 0), dst=(source, 8, 5, 0, 0))


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        (_outside, "16 bytes at 0x[0-9a-f]+ are in no allocation"),
        (_between_allocations, "257 bytes at 0x[0-9a-f]+ are in no allocation"),
        (_freed, "1 bytes at 0x[0-9a-f]+ were freed"),
        (_wrong_kind, "8 bytes at 0x[0-9a-f]+ are in no allocation"),
        (
            _device_memory_as_the_hosts,
            "is device memory, and cudaMemcpyHostToDevice means the host's",
        ),
        (_an_array_as_an_address, "an address is a number, not array"),
        (_default_stream, "0 is the default stream"),
        (_no_device, "no device was chosen"),
        (_box_wider_than_its_lines, "4 bytes from 3 of 6"),
        (_box_of_more_lines_than_a_plane_has, "2 lines from 3 of 4"),
        (_box_beyond_its_memory, "72 bytes at 0x[0-9a-f]+ are in no allocation"),
        (_box_onto_itself, "the places of a copy are in one allocation"),
    ],
)
def test_cuda_is_held_to_its_rules(
    gpu: Gpu, violation: Callable[[Gpu], None], message: str
) -> None:
    with pytest.raises(ContractError, match=message):
        violation(gpu)


class QuietLog(ILogger):
    def log(self, severity: ILogger.Severity, msg: str) -> None:
        pass


PAST = "past_key_values.0.key"


class Trt:
    """An engine of one key tensor, whose logits are the sum of all tokens."""

    def __init__(self) -> None:
        self.gpu = Gpu()
        tensors = [
            ("input_ids", [-1, -1], "INT64", "INPUT"),
            ("attention_mask", [-1, -1], "INT64", "INPUT"),
            (PAST, [-1, 1, -1, 1], "FLOAT", "INPUT"),
            ("logits", [-1, 1, 1], "FLOAT", "OUTPUT"),
            ("present.0.key", [-1, 1, -1, 1], "FLOAT", "OUTPUT"),
        ]
        prefill = {
            "input_ids": [[1, 1], [2, 4], [2, 4]],
            "attention_mask": [[1, 1], [2, 4], [2, 4]],
            PAST: [[1, 1, 0, 1], [2, 1, 0, 1], [2, 1, 0, 1]],
        }
        decode = {
            "input_ids": [[1, 1], [2, 1], [2, 1]],
            "attention_mask": [[1, 2], [2, 5], [2, 5]],
            PAST: [[1, 1, 1, 1], [2, 1, 4, 1], [2, 1, 4, 1]],
        }
        document = {
            "graph": "",
            "profiles": [prefill, decode],
            "tensors": [
                {"name": name, "shape": shape, "dtype": dtype, "mode": mode, "location": "DEVICE"}
                for name, shape, dtype, mode in tensors
            ],
        }
        owner = TensorRTStandIn(self.gpu.cuda, compute=self._compute)
        owner.context_bytes = 16
        self.engine = Engine(owner, document, QuietLog())
        self.memory = [self.gpu("cudaMalloc", 256) for _ in tensors]

    def _compute(self, inputs: Arrays) -> Arrays:
        tokens = inputs["input_ids"].astype(np.float32)
        present = np.concatenate([inputs[PAST], tokens[:, None, :, None]], axis=2)
        return {"present.0.key": present, "logits": present.sum(axis=2)}

    def context(self, profile: int = 0) -> Context:
        context = self.engine.create_execution_context()
        assert context is not None
        assert context.set_optimization_profile_async(profile, self.gpu.stream)
        return context

    def ready(self) -> Context:
        """A context that can prefill two prompts of three tokens."""
        context = self.context()
        for name in ("input_ids", "attention_mask"):
            context.set_input_shape(name, (2, 3))
        context.set_input_shape(PAST, (2, 1, 0, 1))
        for name, address in zip(self.engine.tensors, self.memory, strict=True):
            context.set_tensor_address(name, address)
        return context

    def tensor(self, name: str, count: int) -> Any:
        address = self.memory[list(self.engine.tensors).index(name)]
        dtype = np.int64 if name == "input_ids" else np.float32
        return self.gpu.cuda.memory(address, count * np.dtype(dtype).itemsize).view(dtype)


@pytest.fixture
def trt() -> Trt:
    return Trt()


def test_an_engine_runs_when_its_stream_does(trt: Trt) -> None:
    context = trt.ready()
    trt.tensor("input_ids", 6)[:] = [1, 2, 3, 4, 5, 6]
    assert context.execute_async_v3(trt.gpu.stream)
    assert np.isnan(trt.tensor("logits", 2)).all()
    trt.gpu("cudaStreamSynchronize", trt.gpu.stream)
    assert trt.tensor("logits", 2).tolist() == [6, 15]
    assert trt.tensor("present.0.key", 6).tolist() == [1, 2, 3, 4, 5, 6]


def _profile_of_two_contexts(trt: Trt) -> None:
    trt.context(1)
    trt.context(1)


def _no_profile(trt: Trt) -> None:
    context = trt.engine.create_execution_context()
    assert context is not None
    context.set_input_shape("input_ids", (1, 1))


def _shape_outside_the_profile(trt: Trt) -> None:
    trt.context(1).set_input_shape("input_ids", (1, 2))


def _shape_of_an_output(trt: Trt) -> None:
    trt.context().set_input_shape("logits", (1, 1, 1))


def _shape_of_numpys_numbers(trt: Trt) -> None:
    trt.context().set_input_shape("input_ids", (np.int64(1), 1))


def _no_shape(trt: Trt) -> None:
    context = trt.context()
    for name, address in zip(trt.engine.tensors, trt.memory, strict=True):
        context.set_tensor_address(name, address)
    context.execute_async_v3(trt.gpu.stream)


def _shape_lost_with_the_profile(trt: Trt) -> None:
    context = trt.ready()
    context.set_optimization_profile_async(1, trt.gpu.stream)
    context.execute_async_v3(trt.gpu.stream)


def _no_address(trt: Trt) -> None:
    context = trt.ready()
    del context._addresses["logits"]
    context.execute_async_v3(trt.gpu.stream)


def _null_for_an_empty_input(trt: Trt) -> None:
    context = trt.ready()
    context.set_tensor_address(PAST, 0)
    context.execute_async_v3(trt.gpu.stream)


def _not_aligned(trt: Trt) -> None:
    trt.ready().set_tensor_address("logits", trt.memory[0] + 128)


def _output_onto_an_input(trt: Trt) -> None:
    context = trt.ready()
    context.set_tensor_address("logits", trt.memory[0])
    context.execute_async_v3(trt.gpu.stream)


def _empty_input_in_another_tensor(trt: Trt) -> None:
    context = trt.ready()
    context.set_tensor_address(PAST, trt.memory[0])
    context.execute_async_v3(trt.gpu.stream)


def _memory_too_small(trt: Trt) -> None:
    context = trt.ready()
    context.set_tensor_address("input_ids", trt.gpu("cudaMalloc", 47))
    context.execute_async_v3(trt.gpu.stream)


def _mask_of_another_length(trt: Trt) -> None:
    context = trt.ready()
    context.set_input_shape("attention_mask", (2, 4))
    context.execute_async_v3(trt.gpu.stream)


def _rows_of_another_number(trt: Trt) -> None:
    context = trt.ready()
    context.set_input_shape("attention_mask", (1, 3))
    context.execute_async_v3(trt.gpu.stream)


def _default_stream_to_run_on(trt: Trt) -> None:
    trt.ready().execute_async_v3(0)


@pytest.mark.parametrize(
    ("violation", "message"),
    [
        (_profile_of_two_contexts, "profile 1 is another context's"),
        (_no_profile, "no optimisation profile was chosen"),
        (_shape_outside_the_profile, r"input_ids of \(1, 2\) is outside profile 1"),
        (_shape_of_an_output, "logits is not an input"),
        (_shape_of_numpys_numbers, "a shape is a tuple of int"),
        (_no_shape, "input_ids has no shape"),
        (_shape_lost_with_the_profile, "input_ids has no shape"),
        (_no_address, "logits has no address"),
        (_null_for_an_empty_input, "1 bytes at 0x0 are in no allocation"),
        (_not_aligned, "where logits is, is not aligned to 256"),
        (_output_onto_an_input, "(input_ids and logits|logits and input_ids) overlap"),
        (_empty_input_in_another_tensor, "(input_ids and past|past_key_values.0.key and) "),
        (_memory_too_small, "48 bytes at 0x[0-9a-f]+ are in no allocation"),
        (_mask_of_another_length, "a mask of 4 columns, and not of 3"),
        (_rows_of_another_number, "batches of different sizes"),
        (_default_stream_to_run_on, "0 is the default stream"),
    ],
)
def test_tensorrt_is_held_to_its_rules(
    trt: Trt, violation: Callable[[Trt], None], message: str
) -> None:
    with pytest.raises(ContractError, match=message):
        violation(trt)
