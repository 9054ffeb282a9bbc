"""`python -m tools.verify_neuron`, or `make verify-neuron`."""

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.errors import BenchmarkError
from containers.encoders.manifest import RUNTIME_PACKAGES, TARGET_RUNTIMES
from tools.verification.runner import Step, Verification, lacking, verify
from tools.verify_neuron.device import (
    WORKER_PYTHON,
    describe,
    find_device,
    worker_packages,
    worker_python,
)

_MODULES = (
    "boto3", "httptools", "numpy", "offapi", "prometheus_client", "starlette", "tokenizers",
    "uvicorn", "uvloop",
)  # fmt: skip
# What `compile` needs beside AWS's image, by its runtime.
_REQUIREMENTS = "containers/neuron/requirements-pytorch-inference-{}.txt"
_COMPILE_PACKAGES = ("safetensors", "transformers")
# torch_neuron passes TensorFlow's graphs to its compiler.
_MAKERS = {"torch_neuron": ("tensorflow",)}

STEPS = (
    Step("model", "makes a BERT-base with random weights", 600),
    Step("compile", "compiles it for each layout, by the container's program", 7500, ("model",)),
    Step("answers", "serves it and compares the answers with transformers on the CPU", 1800),
    Step("throughput", "measures it beside AWS's published figures", 3600),
)


def missing(root: Path) -> list[str]:
    """Returns everything that the machine lacks, with its remedy."""
    try:
        found, families = [], [find_device(root).family]
    except BenchmarkError as error:
        found, families = [str(error)], ["inf1", "inf2"]
    installed = lacking(dict.fromkeys(_MODULES, "run `make setup`, which installs it"))
    return [*found, *_lacking_packages(families), *installed]


def _lacking_packages(families: Sequence[str]) -> Iterator[str]:
    installed, python = worker_packages(), worker_python()
    for family in families:
        runtime = TARGET_RUNTIMES[family][0]
        required, compilers = RUNTIME_PACKAGES[runtime]
        requirements = _REQUIREMENTS.format(runtime.removeprefix("torch_"))
        for packages, remedy in (
            (
                (*required, *compilers, *_MAKERS.get(runtime, ())),
                f"set {WORKER_PYTHON} to the Python of AWS's environment for PyTorch on {family}",
            ),
            (_COMPILE_PACKAGES, f"`{python} -m pip install --no-deps -r {requirements}`"),
        ):
            absent = [name for name in packages if name not in installed]
            if absent:
                yield f"{family} needs {', '.join(absent)} in the workers' {python}: {remedy}"


def main(arguments: Sequence[str] | None = None, *, root: Path = Path("/")) -> int:
    verification = Verification(
        name="verify-neuron",
        module="tools.verify_neuron.steps",
        about="Verifies the Neuron container on an inf1, inf2 or trn1 instance.",
        steps=STEPS,
        missing=lambda: missing(root),
        device=lambda: describe(root),
        packages=("httptools", "numpy", "starlette", "tokenizers", "uvicorn", "uvloop"),
        root=root,
    )
    return verify(verification, arguments)


if __name__ == "__main__":
    sys.exit(main())
