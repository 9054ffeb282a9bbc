"""The program of a job: checks the input, watches over the child, moves its output into place.

It imports nothing large. It therefore answers a signal at once, whatever the child is doing, and
survives a child that is killed for lack of memory.
"""

import contextlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, Final, TypeVar

from containers.jobs.paths import JobPaths
from containers.jobs.report import CompileError, exit_code_of
from containers.serving.exit_codes import EXIT_OK
from containers.serving.logs import configure_logging, log_info, log_warning

HyperparametersT = TypeVar("HyperparametersT")
CheckpointT = TypeVar("CheckpointT")

_SCRATCH_PREFIX: Final = ".compile-"
_STOP_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
# Without this file, no program takes the directory for a model.
_LAST_FILE: Final = "config.json"
# An isolated training job has no network, and libraries would wait for it in vain.
_OFFLINE: Final = {"HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1"}


@dataclass(frozen=True)
class Child:
    """The process that does a job whose input was checked.

    The scratch directory is appended to its command. `fields` are the job's settings, for the log,
    and `environment` has variables in addition to the program's own.
    """

    command: tuple[str, ...]
    checkpoint_bytes: int
    fields: Mapping[str, Any]
    environment: Mapping[str, str] = field(default_factory=dict)


class _StopRequestedError(BaseException):
    """SIGTERM or SIGINT arrived; no `except Exception` catches this error."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_job(environ: Mapping[str, str], prepare: Callable[[JobPaths], Child]) -> int:
    """Runs a compile job, whose input `prepare` checks; returns the process's exit code.

    It is 0; 1 for a problem that the user can solve, 2 for a bug of Slipway, both with a reason in
    the file `failure`; 128 plus the signal's number after a stop.
    """
    configure_logging("INFO", sys.stdout)
    paths, problems = JobPaths.read(environ)

    def work() -> int:
        with _stop_signals_raise():
            if problems:
                raise CompileError("; ".join(problems))
            return _run(paths, environ, prepare)

    try:
        return exit_code_of(work, paths.output)
    except _StopRequestedError as stop:
        log_warning(
            "compile_stopped",
            signal=signal.Signals(stop.number).name,
            message="nothing is left in the output directory",
        )
        return 128 + stop.number


def checked_input(
    paths: JobPaths,
    read_hyperparameters: Callable[[Path], tuple[HyperparametersT | None, list[str]]],
    read_checkpoint: Callable[
        [Path, HyperparametersT | None], tuple[CheckpointT | None, list[str]]
    ],
) -> tuple[HyperparametersT, CheckpointT]:
    """Returns the hyperparameters and the checkpoint, or raises one error with all problems."""
    asked, problems = read_hyperparameters(paths.input_config)
    if not paths.weights.is_dir():
        absent = f"{paths.weights} is not a directory: give the job an input channel `weights`"
        raise CompileError("; ".join([*problems, absent]))
    try:
        checkpoint, checkpoint_problems = read_checkpoint(paths.weights, asked)
    except OSError as error:
        raise CompileError(f"cannot read {error.filename}: {error.strerror}") from error
    problems += checkpoint_problems
    if problems or asked is None or checkpoint is None:
        raise CompileError("; ".join(problems))
    return asked, checkpoint


def _run(paths: JobPaths, environ: Mapping[str, str], prepare: Callable[[JobPaths], Child]) -> int:
    started = time.monotonic()
    child = prepare(paths)
    with _scratch_directory(paths.model) as scratch:
        # The pipe is never written to. The child ends when it closes, however this process ends.
        with _started(child, scratch, {**environ, **_OFFLINE, **child.environment}) as process:
            try:
                log_info(
                    "compile_started",
                    **child.fields,
                    checkpoint_bytes=child.checkpoint_bytes,
                    worker_process_id=process.pid,
                )
                exit_code = process.wait()
            finally:
                process.kill()
        if exit_code > 0:
            # The child reported the reason itself.
            return exit_code
        _check_signal(-exit_code, child.checkpoint_bytes)
        files = _move_into_place(scratch, paths.model)
    log_info(
        "compile_finished",
        files=files,
        duration_seconds=round(time.monotonic() - started, 3),
        peak_memory_bytes=_peak_memory_bytes(),
    )
    return EXIT_OK


def _started(
    child: Child, scratch: Path, environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    command = [*child.command, str(scratch)]
    try:
        return subprocess.Popen(  # noqa: S603  (a module of Slipway)
            command, stdin=subprocess.PIPE, env=environment
        )
    except OSError as error:
        raise CompileError(f"cannot start {child.command[0]}: {error.strerror}") from error


def _check_signal(number: int, checkpoint_bytes: int) -> None:
    """Raises if a signal ended the child; 0 is none."""
    if not number:
        return
    name = signal.Signals(number).name
    if number == signal.SIGKILL:
        raise CompileError(
            f"the compiling process was killed ({name}), most likely for lack of memory: the "
            f"checkpoint has {checkpoint_bytes} bytes, and compiling takes a multiple of that; "
            "run the job on an instance with more memory"
        )
    raise RuntimeError(f"the compiling process died of {name}; the log has its last stage")


@contextlib.contextmanager
def _scratch_directory(model_dir: Path) -> Iterator[Path]:
    """Yields a new directory inside `model_dir`, so that moving files out is a plain rename.

    The directory is removed afterwards. Raises `CompileError` if `model_dir` cannot be written to,
    or is not empty.
    """
    try:
        model_dir.mkdir(parents=True, exist_ok=True)
        for path in sorted(model_dir.iterdir()):
            if not path.name.startswith(_SCRATCH_PREFIX):
                raise CompileError(
                    f"{model_dir} is not empty, it holds {path.name}: the model needs a directory "
                    "of its own"
                )
            # Left by a run that was killed.
            shutil.rmtree(path)
        scratch = Path(tempfile.mkdtemp(prefix=_SCRATCH_PREFIX, dir=model_dir))
    except OSError as error:
        raise CompileError(f"cannot write to {model_dir}: {error.strerror}") from error
    try:
        yield scratch
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _move_into_place(scratch: Path, model_dir: Path) -> dict[str, int]:
    """Moves the files to their final directory; returns their sizes in bytes.

    config.json goes last: without it, no program takes the directory for a model. A stop waits
    until all files are in place.
    """
    paths = sorted(scratch.iterdir(), key=lambda path: (path.name == _LAST_FILE, path.name))
    sizes = {path.name: path.stat().st_size for path in paths}
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _STOP_SIGNALS)
    try:
        for path in paths:
            path.rename(model_dir / path.name)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    return sizes


@contextlib.contextmanager
def _stop_signals_raise() -> Iterator[None]:
    """Makes SIGTERM and SIGINT raise, once; by default a container ignores SIGTERM."""

    def stop(number: int, _frame: FrameType | None) -> None:
        for ignored in _STOP_SIGNALS:
            signal.signal(ignored, signal.SIG_IGN)
        raise _StopRequestedError(number)

    before = {number: signal.signal(number, stop) for number in _STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _peak_memory_bytes() -> int:
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return largest if sys.platform == "darwin" else largest * 1024
