"""The images' entry point: chooses the CUDA driver library, then becomes the program.

The loader reads LD_LIBRARY_PATH once, when a process starts, so the choice must be made before the
program starts. The program replaces this process and keeps its process id, so SIGTERM reaches the
program itself. It keeps to Python 3.10, which some of Triton's images have.
"""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from containers.jobs.paths import JobPaths
from containers.jobs.report import report_failure
from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import configure_logging, log_error, log_info
from containers.tensorrt.cuda_driver import Decision, decide, start_cuda

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
