"""Runs the commands of a stage, as a user would type them."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.execution import interrupts_held

_ENDING_SECONDS = 10.0
_LAST_LINES = 20

Run = Callable[..., str]
"""`run(*command, seconds=SECONDS)` returns what a command printed on standard output."""


class CommandError(Exception):
    """A command failed, or did not end in time; the message has its last lines."""


def commands_of(
    folder: Path, log: Path, *, region: str, environ: Mapping[str, str] = os.environ
) -> Run:
    """Returns a function that runs commands in a folder, without a terminal.

    The function returns a command's standard output. It raises CommandError if the exit status is
    not 0, or if the command takes longer than `seconds`.

    Args:
        folder: working directory of the commands.
        log: file to which all output is appended.
        region: set for the commands as AWS_REGION.
        environ: the rest of their environment.
    """
    # Finds cdk, slipway and Python of this environment first.
    path = f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    variables = {**environ, "PATH": path, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}

    def note(line: str, output: str, errors: str) -> None:
        with log.open("a", encoding="utf-8") as file:
            file.write(f"$ {line}\n{output}{errors}\n")

    def run(*command: str, seconds: float) -> str:
        line = " ".join(command)
        process: subprocess.Popen[str] | None = None
        try:
            with interrupts_held():
                process = _start(command, folder, variables)
            output, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            assert process is not None  # noqa: S101  # for the type checker
            output, errors = _end(process)
            note(line, output, errors)
            raise CommandError(
                f"`{line}` did not end within {seconds / 60:.0f} minutes\n{_last(output, errors)}"
            ) from None
        except BaseException:
            if process is not None:
                note(line, *_end(process))
            raise
        note(line, output, errors)
        if process.returncode:
            raise CommandError(f"`{line}` ended with {process.returncode}\n{_last(output, errors)}")
        return output

    return run


def _start(
    command: Sequence[str], folder: Path, variables: Mapping[str, str]
) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(  # noqa: S603  # fixed arguments, no shell
            command,
            cwd=folder,
            env=variables,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C reaches this program alone, which then ends the command.
            start_new_session=True,
        )
    except OSError as error:
        raise CommandError(f"`{' '.join(command)}` cannot be run: {error.strerror}") from None


def _end(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Ends a command and its descendants; returns its output."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=_ENDING_SECONDS)
    return "", ""


def _last(output: str, errors: str) -> str:
    lines = [line for line in (output + errors).splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])
