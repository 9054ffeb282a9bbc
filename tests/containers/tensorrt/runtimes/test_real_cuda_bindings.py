"""NVIDIA's own bindings beside their stand-in: the same names, parameters, results and numbers.

They work without a GPU as far as that goes: every call that needs one says that there is none. The
image has version 12.9; PyTorch brings 13, which is what is here.
"""

import importlib
import inspect
import re

import pytest

from tests.containers.tensorrt.runtimes import cuda_standin
from tests.containers.tensorrt.runtimes.cuda_standin import CudaStandIn
from tests.support.groups import load

runtime = load("cuda.bindings.runtime", group="torch")

pytestmark = pytest.mark.torch

FUNCTIONS = [name for name in vars(CudaStandIn) if re.match("(make_)?cuda[A-Z].*[a-z]$", name)]
CALLS = {
    "cudaSetDevice": (0,),
    "cudaGetDeviceProperties": (0,),
    "cudaMemGetInfo": (),
    "cudaMalloc": (256,),
    "cudaStreamCreateWithFlags": (1,),
    "cudaStreamSynchronize": (1000,),
    "cudaMemcpyAsync": (256, 512, 8, "HostToDevice", 1000),
    "cudaMemset2DAsync": (256, 8, 0, 8, 1, 1000),
    "cudaMemcpy3DAsync": (None, 1000),
}


@pytest.fixture
def _no_gpu():
    """The folder's conftest hides what there is."""
    error, _ = runtime.cudaGetDeviceCount()
    assert error != runtime.cudaError_t.cudaSuccess


def test_the_calls_of_the_container_are_among_them():
    assert set(CALLS) <= set(FUNCTIONS)
    assert {"make_cudaPitchedPtr", "make_cudaPos", "make_cudaExtent"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if callable(vars(CudaStandIn)[name])])
def test_functions_have_the_same_parameters(name):
    found = getattr(runtime, name)
    if inspect.isclass(found):
        assert inspect.isclass(vars(CudaStandIn)[name])
        return
    signature = re.match(r"\w+\((.*?)\)", found.__doc__)
    parameters = [
        part.partition(":")[0].split()[-1] for part in signature[1].split(",") if part.strip()
    ]
    # The types of C come first, and those of Python last.
    expected = list(inspect.signature(getattr(CudaStandIn(), name)).parameters)
    assert [found for found in parameters if found in expected] == expected


@pytest.mark.parametrize("enumeration", ["cudaError_t", "cudaMemcpyKind"])
def test_numbers_are_the_same(enumeration):
    for member in getattr(cuda_standin, enumeration):
        assert getattr(getattr(runtime, enumeration), member.name) == member.value
    assert runtime.cudaStreamNonBlocking == CudaStandIn.cudaStreamNonBlocking


@pytest.mark.usefixtures("_no_gpu")
@pytest.mark.parametrize("name", list(CALLS))
def test_results_have_the_same_form(name):
    arguments = [
        runtime.cudaMemcpyKind.cudaMemcpyHostToDevice if each == "HostToDevice" else each
        for each in CALLS[name]
    ]
    error, *values = getattr(runtime, name)(*arguments)
    assert error != runtime.cudaError_t.cudaSuccess
    standin = CudaStandIn()
    standin.failures[name] = cuda_standin.cudaError_t.cudaErrorNoDevice
    assert values == list(getattr(standin, name)(*CALLS[name])[1:])
    [_, meaning] = runtime.cudaGetErrorString(error)
    assert isinstance(meaning, bytes)


@pytest.mark.usefixtures("_no_gpu")
def test_a_machine_without_a_gpu_is_told_as_such():
    device_memory = importlib.import_module("containers.tensorrt.runtimes.tensorrt.device_memory")
    with pytest.raises(device_memory.DeviceError, match=r"^cudaSetDevice: .+ \(cudaError\w+\)$"):
        device_memory.use_gpu()


def test_a_box_becomes_cudas_own_structure(monkeypatch):
    device_memory = importlib.import_module("containers.tensorrt.runtimes.tensorrt.device_memory")
    asked = []
    success = (runtime.cudaError_t.cudaSuccess,)
    monkeypatch.setattr(runtime, "cudaStreamCreateWithFlags", lambda _flags: (*success, 1000))
    monkeypatch.setattr(
        runtime, "cudaMemcpy3DAsync", lambda parameters, _: asked.append(parameters) or success
    )
    device_memory.Stream().copy(
        device_memory.Box(address=256, line_bytes=60, plane_lines=64, line=7, byte=12),
        device_memory.Box(address=65536, line_bytes=48, plane_lines=80, line=3),
        bytes_=48,
        lines=9,
        planes=4,
    )
    [found] = asked
    assert (found.srcPtr.ptr, found.srcPtr.pitch, found.srcPtr.ysize) == (256, 60, 64)
    assert (found.srcPos.x, found.srcPos.y, found.srcPos.z) == (12, 7, 0)
    assert (found.dstPtr.ptr, found.dstPtr.pitch, found.dstPtr.ysize) == (65536, 48, 80)
    assert (found.dstPos.x, found.dstPos.y, found.dstPos.z) == (0, 3, 0)
    assert (found.extent.width, found.extent.height, found.extent.depth) == (48, 9, 4)
    assert found.kind == runtime.cudaMemcpyKind.cudaMemcpyDeviceToDevice
