"""Runs work in a process of its own: a timed command, or a function of a module."""

import contextlib
import json
import os
import resource
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.processes import kill_group, start_group
from benchmarks.program import ROOT

_COMMAND_SECONDS = 600.0
_END_SECONDS = 30.0
INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a request to end, and a closed terminal."""


@dataclass(frozen=True)
class Timing:
    """The time of one command, from starting its process until all of its output was read."""

    seconds: float
    processor_seconds: float  # of its processes, without others such as the embedded AWS


def run_timed(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    limit_seconds: float = _COMMAND_SECONDS,
    started: Callable[[int], None] = lambda _process_id: None,
) -> tuple[Timing, str]:
    """Runs a command to its end; returns the timing, and the output with standard error.

    Its whole process group is killed when it takes too long and when this process is told to stop.
    `started` is called with the process's id once it runs.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started_at = time.perf_counter()
    process: subprocess.Popen[str] | None = None
    try:
        with interrupts_held():
            process = start_group(
                command,
                folder,
                environment,
                text=True,
                errors="replace",
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        started(process.pid)
        output, _ = process.communicate(timeout=limit_seconds)
    except BaseException as error:
        printed = ""
        if process:
            kill_group(process)
            printed, _ = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise BenchmarkError(
                f"`{shlex.join(command)}` did not end within {limit_seconds:g} seconds\n{printed}"
            ) from None
        raise
    seconds = time.perf_counter() - started_at
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if process.returncode:
        raise BenchmarkError(
            f"`{shlex.join(command)}` ended with exit code {process.returncode}\n{output}"
        )
    used = (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)
    return Timing(seconds, used), output


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Handles Ctrl-C and the other signals that stop a benchmark only after the block.

    An interrupt while a process starts would leave that process running unnoticed. Only the main
    thread handles signals, so any other thread has nothing to hold.
    """
    held: list[int] = []
    is_main = threading.current_thread() is threading.main_thread()
    previous = {
        number: signal.signal(number, lambda number, _frame: held.append(number))
        for number in (INTERRUPTS if is_main else ())
    }
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if held:
        signal.raise_signal(held[0])


# Any: JSON.
def call_module(
    module: str,
    document: Any,
    *,
    limit_seconds: float,
    variables: Mapping[str, str] | None = None,
) -> Any:
    """Returns the answer of a module that calls `answer_call` with a document.

    The module runs in a fresh process, with this process's environment if `variables` is None.
    """
    with subprocess.Popen(  # noqa: S603  # fixed arguments, no shell
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            output, errors = process.communicate(json.dumps(document), timeout=limit_seconds)
        except BaseException as error:
            # The process may have started others, which it ends first.
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_END_SECONDS)
            process.kill()
            process.wait()
            if isinstance(error, subprocess.TimeoutExpired):
                message = f"{module} did not end within {limit_seconds:g} seconds"
                raise BenchmarkError(message) from None
            raise
    if process.returncode:
        raise BenchmarkError(errors.strip() or f"exit code {process.returncode}")
    return json.loads(output)


def answer_call(function: Callable[[Any], Any]) -> None:
    """Calls a function with the JSON of standard input, and writes what it returns as JSON.

    What libraries print goes to standard error, where it cannot mix with the answer. A
    `BenchmarkError` ends the process with 1; its message goes to standard error.
    """
    output = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    try:
        answer = function(json.load(sys.stdin))
    except BenchmarkError as error:
        sys.exit(str(error))
    with os.fdopen(output, "w", encoding="utf-8") as stream:
        json.dump(answer, stream)
