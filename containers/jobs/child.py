"""The child process of a job: everything that needs a framework or a compiler.

It keeps to Python 3.10; see the package.
"""

import errno
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

from containers.jobs.report import exit_code_of
from containers.serving.exit_codes import EXIT_OPERATOR_PROBLEM
from containers.serving.logs import configure_logging

_FULL_DISK: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run_work(work: Callable[[], None], *, scratch: Path, output_dir: Path) -> int:
    """Does a child's work, with a log on standard output; returns the exit code of `exit_code_of`.

    `work` writes into the scratch directory, which is inside the job's model directory, and nowhere
    else.
    """
    configure_logging("INFO", sys.stdout)
    # Exporters and compilers log every step of every pass at INFO.
    logging.getLogger().setLevel(logging.WARNING)
    logging.getLogger("containers").setLevel(logging.INFO)
    return exit_code_of(work, output_dir, partial(_resource_reason, scratch))


def run_process(main: Callable[[], int]) -> NoReturn:
    # A Ctrl-C reaches every process of the terminal; the parent decides what to do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    exit_code = main()
    logging.shutdown()
    sys.stdout.flush()
    # Skips the shutdown of libraries' threads and memory, which would take seconds.
    os._exit(exit_code)


def _resource_reason(scratch: Path, error: BaseException) -> str | None:
    """Returns the reason if the machine was too small, or None."""
    if isinstance(error, OSError) and error.errno in _FULL_DISK:
        return (
            f"no space left for {scratch.parent} ({error.strerror}): give the job a larger volume"
        )
    # torch raises a RuntimeError that names its allocator.
    if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
        return "out of memory: run the job on an instance with more memory"
    return None


def _end_with_parent() -> None:
    """Ends this process when the parent closes the other end of standard input or is killed."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(EXIT_OPERATOR_PROBLEM)
