"""The images' entry point: chooses the CUDA driver library, then becomes the program.

The loader reads LD_LIBRARY_PATH once, when a process starts, so the choice must be made before the
program starts. The program replaces this process and keeps its process id, so SIGTERM reaches the
program itself. It keeps to Python 3.10, which some of Triton's images have.

A host has a kernel driver and the CUDA library (`libcuda.so.1`) of the same version. An image with
a newer CUDA can bring a newer library, CUDA's forward-compatibility package, which runs on older
kernel drivers of data-center GPUs. The rules, all read on 2026-11-22:

- CUDA 11 runs on drivers from 450, CUDA 12 from 525, CUDA 13 from 580; older drivers need the
  package (https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html).
- The package's library is used only if the driver is older than the library. AWS's images decide so
  (aws/deep-learning-containers at e0ecedea6a, scripts/docker/common/start_cuda_compat.sh), and
  NVIDIA prefers it to an older driver's library.
- NVIDIA's images keep it in `compat/lib.real`. The entry point of these images puts that directory
  on the path, but Slipway's entry point replaces it
  (https://github.com/triton-inference-server/server/issues/3518). CUDA's Linux packages, and so
  AWS's images, have it in `compat`.
- Only a call shows whether the library and the driver work together: `cuInit` returns 803 if the
  package does not support the kernel driver, 804 if it does not support the GPU.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from containers.jobs.paths import JobPaths
from containers.jobs.report import report_failure
from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import configure_logging, log_error, log_info

_PROGRAM: Final = "containers.tensorrt"
_REMEDIES: Final = {
    "compile": (
        "no setting of a training job chooses its driver: run it on another instance type "
        "(artifacts.compile.instance), whose hosts have a newer one"
    ),
    "serve": (
        "choose a host image with a newer driver in endpoint.inference_ami_version, or remove that "
        "setting: the default fits the image's CUDA"
    ),
}

# CUDA's major version -> the oldest major version of the driver that runs it.
OLDEST_DRIVERS: Final[Mapping[int, int]] = {11: 450, 12: 525, 13: 580}

_LIBRARY: Final = "libcuda.so.1"
_LIBRARY_PATH: Final = "LD_LIBRARY_PATH"
_COMPATIBILITY_DIRECTORIES: Final = ("compat/lib.real", "compat")
_VERSION: Final = re.compile(r"\d+(?:\.\d+)+")
# "... Kernel Module  550.163.01 ..."; the open modules say "... Kernel Module for x86_64  580...".
_KERNEL_MODULE: Final = re.compile(
    rf"^NVRM.*Kernel Module(?: for \S+)? +({_VERSION.pattern})", re.MULTILINE
)
_NVIDIA_SMI: Final = (
    "nvidia-smi",
    "--query-gpu=driver_version",
    "--format=csv,noheader",
    "--id=0",
)
_NVIDIA_SMI_TIMEOUT_SECONDS: Final = 60
# Without persistence mode, the driver initialises every GPU of the host first, which takes long.
_PROBE_TIMEOUT_SECONDS: Final = 120
_PROBE: Final = f"import ctypes; print(ctypes.CDLL({_LIBRARY!r}).cuInit(0))"
_MEANINGS: Final = {
    100: "no GPU is visible",
    803: "the compatibility libraries do not support this driver",
    804: "the GPU does not support forward compatibility",
}

# Returns why CUDA's library does not start with these variables; None if it starts.
Probe = Callable[[Mapping[str, str]], str | None]


@dataclass(frozen=True)
class Compatibility:
    directory: Path
    version: str  # of the driver that they come from


@dataclass(frozen=True)
class Decision:
    environment: Mapping[str, str]  # for the program
    reason: str  # one sentence, for the log
    driver: str | None  # the host's version
    cuda: str | None  # the image's version
    compatibility: Compatibility | None
    is_compatibility_used: bool = False  # the program loads the image's libraries
    problem: str | None = None  # why neither library works


def decide(environ: Mapping[str, str], root: Path, probe: Probe) -> Decision:
    """Returns the library that the program loads, and why.

    `root` is the root of the file system, `/` in a container.
    """
    driver = host_driver(environ, root)
    cuda = image_cuda(environ, root)
    compatibility = image_compatibility(root)
    unchanged = partial(Decision, environ, driver=driver, cuda=cuda, compatibility=compatibility)
    if driver is None:
        return unchanged(reason="the host has no NVIDIA driver")
    if compatibility is None:
        about = "it has no compatibility libraries"
        enough = "the image has no compatibility libraries, and the driver is enough"
    elif _numbers(driver) >= _numbers(compatibility.version):
        about = f"its compatibility libraries {compatibility.version} are not newer"
        enough = "the driver is not older than the image's compatibility libraries"
    else:
        environment = {
            **environ,
            _LIBRARY_PATH: _first(compatibility.directory, environ.get(_LIBRARY_PATH, "")),
        }
        failure = probe(environment)
        if failure is None:
            return Decision(
                environment,
                "the driver is older than the image's compatibility libraries",
                driver,
                cuda,
                compatibility,
                is_compatibility_used=True,
            )
        about = f"its compatibility libraries {compatibility.version} fail ({failure})"
        enough = f"{about}, and the driver is new enough without them"
    oldest = OLDEST_DRIVERS.get(_numbers(cuda)[0]) if cuda else None
    if oldest is None or _numbers(driver)[0] >= oldest:
        return unchanged(reason=enough)
    return unchanged(
        reason="neither the driver's library nor the image's works",
        problem=(
            f"the image's CUDA {cuda} needs NVIDIA driver {oldest} or later, the host has "
            f"{driver}, and {about}"
        ),
    )


def host_driver(environ: Mapping[str, str], root: Path) -> str | None:
    try:
        found = _KERNEL_MODULE.search((root / "proc/driver/nvidia/version").read_text("utf-8"))
    except OSError:
        found = None
    if found:
        return found[1]
    try:
        answer = subprocess.run(  # noqa: S603  (a fixed command)
            _NVIDIA_SMI,
            capture_output=True,
            text=True,
            timeout=_NVIDIA_SMI_TIMEOUT_SECONDS,
            env=dict(environ),
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    # Without a driver, nvidia-smi prints a sentence in place of the version.
    printed = answer.stdout.strip()
    return printed if _VERSION.fullmatch(printed) else None


def image_cuda(environ: Mapping[str, str], root: Path) -> str | None:
    found = _VERSION.match(environ.get("CUDA_VERSION", ""))
    if found is None:
        # The link points to a directory such as `cuda-13.0`.
        found = _VERSION.search((root / "usr/local/cuda").resolve().name)
    return found[0] if found else None


def image_compatibility(root: Path) -> Compatibility | None:
    for name in _COMPATIBILITY_DIRECTORIES:
        directory = root / "usr/local/cuda" / name
        library = directory / _LIBRARY
        # The name of the linked file has the version: libcuda.so.580.82.07.
        version = library.resolve().name.removeprefix("libcuda.so.")
        if library.is_file() and _VERSION.fullmatch(version):
            return Compatibility(directory, version)
    return None


def start_cuda(environment: Mapping[str, str]) -> str | None:
    """Starts CUDA's library in a process of its own; returns why it fails, or None if it starts."""
    try:
        answer = subprocess.run(  # noqa: S603  (a fixed command)
            [sys.executable, "-I", "-c", _PROBE],
            capture_output=True,
            text=True,
            timeout=_PROBE_TIMEOUT_SECONDS,
            env=dict(environment),
        )
    except subprocess.TimeoutExpired:
        return f"cuInit does not return within {_PROBE_TIMEOUT_SECONDS} s"
    if answer.returncode != 0:
        lines = answer.stderr.strip().splitlines()
        return lines[-1] if lines else f"cuInit ends its process with {answer.returncode}"
    status = int(answer.stdout)
    if status == 0:
        return None
    meaning = _MEANINGS.get(status)
    return f"cuInit returns {status}" + (f", {meaning}" if meaning else "")


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _first(directory: Path, path: str) -> str:
    # An empty entry would mean the working directory, so empty entries are dropped.
    return os.pathsep.join([str(directory), *filter(None, path.split(os.pathsep))])


def main(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    program: str = _PROGRAM,
    root: Path = Path("/"),
) -> NoReturn:
    """Becomes the program (a package) with a command, `serve` or `compile`, and its arguments.

    `root` is the root of the file system, `/` in a container.
    """
    configure_logging("INFO", sys.stdout)
    decision = decide(environ, root, start_cuda)
    _report(decision)
    if decision.problem is not None:
        command = next(iter(arguments), "serve")
        remedy = _REMEDIES.get(command, _REMEDIES["serve"])
        _fail(command, f"{decision.problem}; {remedy}", environ)
    # Flushed, because buffered log lines would be lost with this process.
    sys.stdout.flush()
    command_line = [sys.executable, "-m", program, *arguments]
    os.execve(sys.executable, command_line, dict(decision.environment))  # noqa: S606  (no shell)


def _report(decision: Decision) -> None:
    compatibility = decision.compatibility
    log_info(
        "cuda_driver_chosen",
        uses_compatibility_libraries=decision.is_compatibility_used,
        reason=decision.reason,
        driver_version=decision.driver,
        cuda_version=decision.cuda,
        compatibility_version=compatibility.version if compatibility else None,
        compatibility_directory=str(compatibility.directory) if compatibility else None,
    )


def _fail(command: str, reason: str, environ: Mapping[str, str]) -> NoReturn:
    if command == "compile":
        paths, _ = JobPaths.read(environ)
        report_failure(paths.output, reason)
    else:
        log_error("cuda_driver_too_old", message=reason)
    sys.exit(EXIT_OPERATOR_PROBLEM)


if __name__ == "__main__":
    main(sys.argv[1:], os.environ)
