"""`python -m tools.verify_gpu`, or `make verify-gpu`."""

import contextlib
import ctypes
import platform
import sys
from collections.abc import Callable, Mapping, Sequence

from containers.tensorrt.compile.gpu import find_gpu
from tools.verification.runner import Step, Verification, lacking, verify

_SETUP = "run `make verify-gpu`, which installs it"
_TENSORRT = (
    "`pip install tensorrt-cu12==10.13.3.9`; or, if NVIDIA's index cannot be reached, "
    "tensorrt-cu12-bindings==10.6.0 of PyPI, and on the library path the libraries of Maven "
    "Central's org.bytedeco:tensorrt:10.6-1.5.11:linux-x86_64-redist"
)
_MODULES = {
    "tensorrt": _TENSORRT,
    "cuda.bindings.runtime": _SETUP,
    **dict.fromkeys(
        ("httptools", "jinja2", "numpy", "onnx", "onnx_ir", "onnxruntime", "onnxscript", "pydantic",
         "starlette", "tokenizers", "torch", "transformers", "uvicorn", "uvloop"),
        _SETUP,
    ),
}  # fmt: skip
_PACKAGES = (
    "tensorrt-cu12", "tensorrt-cu12-bindings", "tensorrt-cu13", "cuda-bindings", "torch",
    "transformers", "onnx", "onnxruntime", "onnxscript", "numpy", "tokenizers", "vllm",
)  # fmt: skip

STEPS = (
    Step("model", "makes a GPT-2 with random weights, and its ONNX graph", 600),
    Step("compile", "compiles it for this GPU with the container's program", 1200, ("model",)),
    Step("tokens", "serves it and compares the tokens", 600, ("compile",)),
    Step("throughput", "measures it beside PyTorch and the bare loop", 3600, ("compile",)),
    Step("memory", "compares the estimated memory with what is allocated", 300, ("compile",)),
    Step("t5-compile", "compiles a T5 for this GPU with the Triton container's program", 1200),
    Step(
        "t5-tokens", "compares the T5's tokens with PyTorch's, and times it", 600, ("t5-compile",)
    ),
    Step("t5-triton", "serves the T5 on a real Triton", 600, ("t5-compile",)),
)


def start_cuda() -> str | None:
    """Starts CUDA's driver library, and asks PyTorch for it; returns the problem, or None."""
    try:
        status = ctypes.CDLL("libcuda.so.1").cuInit(0)
    except OSError as error:
        return f"the NVIDIA driver is not installed ({error}): install the driver of your GPU"
    if status:
        return f"CUDA finds no GPU that it can use (cuInit returns {status})"
    with contextlib.suppress(ImportError):
        import torch

        if not torch.cuda.is_available():
            return f"PyTorch {torch.__version__} cannot use the GPU: install it as made for CUDA"
    return None


def missing(start: Callable[[], str | None] = start_cuda) -> list[str]:
    """Returns everything that this machine lacks, with its remedy."""
    found = []
    if (platform.system(), platform.machine()) != ("Linux", "x86_64"):
        found.append("TensorRT's wheels are for Linux on x86-64: use such a machine")
    problem = start()
    return [*found, *([problem] if problem else []), *lacking(_MODULES)]


def device() -> Mapping[str, str | int | float | None]:
    """Returns the GPU's properties, as CUDA and `nvidia-smi` state them."""
    import tensorrt

    from tools.verify_gpu.memory import queried

    gpu = find_gpu()
    driver, total = queried("driver_version,memory.total")
    return {
        "name": gpu.name,
        "compute_capability": gpu.compute_capability,
        "memory_mib": total,
        "driver": driver,
        "tensorrt": tensorrt.__version__,
    }


def main(
    arguments: Sequence[str] | None = None, start: Callable[[], str | None] = start_cuda
) -> int:
    verification = Verification(
        name="verify-gpu",
        module="tools.verify_gpu.steps",
        about="Compile, serve, compare and measure GPT-2 and T5 on this machine's GPU.",
        steps=STEPS,
        missing=lambda: missing(start),
        device=device,
        packages=_PACKAGES,
    )
    return verify(verification, arguments)


if __name__ == "__main__":
    sys.exit(main())
