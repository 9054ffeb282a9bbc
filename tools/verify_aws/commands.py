"""Runs the commands of a stage, as a user would type them."""

import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.errors import BenchmarkError
from benchmarks.execution import interrupts_held
from benchmarks.processes import kill_group, start_group
from slipway.access import Access
from tools.verify_aws.project import Target

_LAST_LINES = 20

Run = Callable[..., str]
"""`run(*command, seconds=SECONDS)` returns what a command printed on standard output."""


@dataclass(frozen=True)
class Deployment:
    """The endpoint to deploy, and how it is reached.

    Args:
        target: its names, account and region.
        access: clients of the account.
        run: runs a command in the project.
        folder: the project.
    """

    target: Target
    access: Access
    run: Run
    folder: Path


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
                # Ctrl-C reaches this program alone, which then ends the command.
                process = start_group(
                    command,
                    folder,
                    variables,
                    text=True,
                    errors="replace",
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            output, errors = process.communicate(timeout=seconds)
        except BenchmarkError as error:
            raise CommandError(str(error)) from None
        except BaseException as error:
            if process is None:
                raise
            kill_group(process)
            output, errors = process.communicate()
            note(line, output, errors)
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            raise CommandError(
                f"`{line}` did not end within {seconds / 60:.0f} minutes\n{_last(output, errors)}"
            ) from None
        note(line, output, errors)
        if process.returncode:
            raise CommandError(f"`{line}` ended with {process.returncode}\n{_last(output, errors)}")
        return output

    return run


def _last(output: str, errors: str) -> str:
    lines = [line for line in (output + errors).splitlines() if line.strip()]
    return "\n".join(f"    {line}" for line in lines[-_LAST_LINES:])
