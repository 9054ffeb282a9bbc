"""Runs the commands of a stage, as a user would type them."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import BenchmarkError
from benchmarks.execution import interrupts_held
from benchmarks.processes import kill_group, start_group
from slipway.access import Access
from tools.verify_aws.project import ENVIRONMENT, Target, assembly

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


class Session:
    """The commands of a run, all of them together within its time.

    Args:
        deployment: the endpoint to deploy.
        limit_seconds: longest time of all commands together.
    """

    def __init__(self, deployment: Deployment, limit_seconds: float) -> None:
        self.deployment = deployment
        self._until = time.monotonic() + limit_seconds

    def until(self, seconds: float) -> float:
        """Returns when to give up a wait of so many seconds, on the monotonic clock."""
        return min(time.monotonic() + seconds, self._until)

    def command(self, *command: str) -> str:
        """Runs a command, and returns what it printed.

        Raises:
            CommandError: it failed, or the time of the run is over.
        """
        left = self._until - time.monotonic()
        if left <= 0:
            raise CommandError("the time of this run is over; `--minutes` gives it more")
        return self.deployment.run(*command, seconds=left)

    def slipway(self, command: str, model: str, *arguments: str) -> dict[str, Any]:
        """Runs a command of slipway for a model, and returns its document."""
        text = self.command("slipway", command, model, *arguments, "--env", ENVIRONMENT, "--json")
        found: dict[str, Any] = json.loads(text)
        return found

    def deploy(self, construct_id: str, model: str, *options: str) -> None:
        """Deploys a stack of the app that has one model."""
        context = ("-c", f"env={ENVIRONMENT}", "-c", f"models={model}")
        self.command(
            "cdk",
            "deploy",
            construct_id,
            *options,
            "--require-approval",
            "never",
            "--output",
            assembly(model),
            *context,
        )


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
