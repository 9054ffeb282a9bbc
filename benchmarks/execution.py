"""Times one command, and leaves nothing of it behind."""

from __future__ import annotations

import contextlib
import os
import resource
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from benchmarks.errors import BenchmarkError

_COMMAND_SECONDS = 600.0


@dataclass(frozen=True)
class Timing:
    """What one command took.

    Args:
        seconds: wall time, from starting its process to having read all of its output.
        processor_seconds: of all its processes together, user and system. What it made other
            processes do, such as the embedded AWS, is not in it.
    """

    seconds: float
    processor_seconds: float


def run_timed(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit_seconds: float = _COMMAND_SECONDS,
) -> tuple[Timing, str]:
    """Runs a command to its end.

    Its whole process group ends with it: when it takes too long and when this process is told to
    stop, the processes it has started go too.

    Args:
        command: program and arguments.
        folder: to run it in.
        environment: all of its variables.
        limit_seconds: after which it has failed.

    Returns:
        The timing, and what it printed, standard error included.

    Raises:
        BenchmarkError: it cannot be started, failed or took too long; with its output.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    process: subprocess.Popen[str] | None = None
    try:
        with _interrupts_held():
            process = _start(command, folder, environment)
        output, _ = process.communicate(timeout=limit_seconds)
    except BaseException as error:
        printed = "" if process is None else _end(process)
        if isinstance(error, subprocess.TimeoutExpired):
            raise BenchmarkError(
                f"`{shlex.join(command)}` did not end within {limit_seconds:g} seconds\n{printed}"
            ) from None
        raise
    seconds = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise BenchmarkError(
            f"`{shlex.join(command)}` ended with exit code {process.returncode}\n{output}"
        )
    used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Timing(seconds, used), output


def _start(
    command: Sequence[str], folder: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(  # noqa: S603  # our own arguments, no shell
            command,
            cwd=folder,
            env=dict(environment),
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
    except OSError as error:
        raise BenchmarkError(f"`{shlex.join(command)}` cannot be run: {error.strerror}") from None


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """Handles SIGINT only after the block.

    An interrupt within `Popen` would leave a process that runs and that nobody knows. Only the main
    thread handles signals, so any other one has nothing to hold.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    held: list[tuple[int, FrameType | None]] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if held and callable(handler):
        handler(*held[0])


def _end(process: subprocess.Popen[str]) -> str:
    """Kills the command with all that it started; returns what it had printed."""
    # macOS refuses where all of them have ended and only the first is left to be collected.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    output, _ = process.communicate()
    return output
