"""The GPU that an engine is built on, which is the only kind of GPU that it runs on."""

import importlib.util

from containers.jobs.report import CompileError
from containers.tensorrt.compile.job import CPU_TARGET
from containers.tensorrt.engine_metadata import Gpu

# The only GPU that is used: SageMaker's instances for compiling have GPUs of one kind.
_DEVICE = 0


def find_gpu() -> Gpu:
    try:
        from cuda.bindings import runtime
    except ImportError as error:
        raise CompileError(
            f"building an engine needs CUDA's Python bindings ({error}): run the job in the "
            "compiler image"
        ) from error
    error_code, properties = runtime.cudaGetDeviceProperties(_DEVICE)
    if error_code != runtime.cudaError_t.cudaSuccess:
        _, text = runtime.cudaGetErrorString(error_code)
        raise CompileError(
            f"building an engine needs a GPU, and CUDA finds none: {text.decode()} "
            f"({error_code.name}); run the job on an instance with the target's GPU"
        )
    return Gpu.of(properties)


def checked_gpu(target: str) -> Gpu | None:
    """Returns this machine's GPU, or None for a target that needs no GPU.

    A `CompileError` says why an engine for `target` cannot be built here.
    """
    if target == CPU_TARGET:
        return None
    if importlib.util.find_spec("tensorrt") is None:
        raise CompileError(
            f"target {target} needs TensorRT, which is not installed here: run the job in the "
            f"compiler image, or set target to {CPU_TARGET}"
        )
    gpu = find_gpu()
    if gpu.compute_capability != target:
        raise CompileError(
            f"target is {target}, and this machine's GPU is {gpu.compute_capability} ({gpu.name}): "
            "an engine runs only on the kind of GPU that it was built on; run the job on an "
            f"instance with {target}"
        )
    return gpu
