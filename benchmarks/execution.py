"""Times one command, and leaves no process of it behind."""

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
    """The time of one command.

    Args:
        seconds: wall time, from starting its process until all of its output was read.
        processor_seconds: user and system time of all its processes together. Work of other
            processes, such as the embedded AWS, is not included.
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

    Its whole process group is killed when it takes too long and when this process is told to stop.

    Args:
        command: program and arguments.
        folder: working directory.
        environment: all of its variables.
        limit_seconds: time after which it counts as failed.

    Returns:
        The timing, and the output, standard error included.

    Raises:
        BenchmarkError: it cannot be started, failed or took too long; the message has its output.
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
        return subprocess.Popen(  # noqa: S603  # fixed arguments, no shell
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

    An interrupt within `Popen` would leave an unnoticed process running. Only the main thread
    handles signals, so any other thread has nothing to hold.
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
    """Kills the command and its descendants; returns its output so far."""
    # macOS refuses if all of them have ended and only the first is left to be collected.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    output, _ = process.communicate()
    return output
