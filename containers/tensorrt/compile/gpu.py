"""The GPU that an engine is built on, and so for."""

from dataclasses import dataclass

from containers.jobs.report import CompileError

# The only one that is used: SageMaker's instances for compiling have one or several of one kind.
_DEVICE = 0


@dataclass(frozen=True)
class Gpu:
    """One GPU.

    Attributes:
        name: as NVIDIA calls it ("NVIDIA A10G").
        compute_capability: as targets are called ("sm86").
    """

    name: str
    compute_capability: str


def find_gpu() -> Gpu:
    """Returns the machine's first GPU.

    Raises:
        CompileError: there is none, or no driver, or CUDA's Python bindings are not installed.
    """
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
    return Gpu(
        name=properties.name.split(b"\0")[0].decode(),
        compute_capability=f"sm{properties.major}{properties.minor}",
    )
