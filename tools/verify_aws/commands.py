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


class CommandError(Exception):
    """A command failed, or did not end in time; the message has its last lines."""


class CheckError(CommandError):
    """A stage ended without an error but did not have its effect."""


@dataclass(frozen=True)
class Session:
    """The endpoint of a run, and its commands, all of them together within the run's time.

    `ends_at` is when the run is given up, on the monotonic clock.
    """

    target: Target
    access: Access
    run: Run
    folder: Path
    ends_at: float

    def until(self, seconds: float) -> float:
        """Returns when to give up a wait of so many seconds, on the monotonic clock."""
        return min(time.monotonic() + seconds, self.ends_at)

    def command(self, *command: str) -> str:
        """Runs a command, and returns what it printed; raises `CommandError`."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            raise CommandError("the time of this run is over; `--minutes` gives it more")
        return self.run(*command, seconds=left)

    def slipway(self, command: str, model: str, *arguments: str) -> dict[str, Any]:
        """Runs a command of slipway for a model, and returns its document."""
        text = self.command("slipway", command, model, *arguments, "--env", ENVIRONMENT, "--json")
        found: dict[str, Any] = json.loads(text)
        return found

    def deploy(self, construct_id: str, model: str, *options: str) -> None:
        """Deploys a stack of the app that has one model."""
        context = ("-c", f"env={ENVIRONMENT}", "-c", f"models={model}")
        always = ("--require-approval", "never", "--output", assembly(model), *context)
        self.command("cdk", "deploy", construct_id, *options, *always)


def commands_of(
    folder: Path, log: Path, *, region: str, environ: Mapping[str, str] = os.environ
) -> Run:
    """Returns a function that runs commands in a folder, without a terminal.

    The function returns a command's standard output. It raises CommandError if the exit status is
    not 0, or if the command takes longer than `seconds`. All output is appended to the log.
    """
    # Finds cdk, slipway and Python of this environment first.
    path = f"{Path(sys.executable).parent}{os.pathsep}{environ.get('PATH', os.defpath)}"
    variables = {**environ, "PATH": path, "AWS_REGION": region, "AWS_DEFAULT_REGION": region}

    def run(*command: str, seconds: float) -> str:
        line, problem = " ".join(command), ""
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
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                )
            process.communicate(timeout=seconds)
            if process.returncode:
                problem = f"ended with {process.returncode}"
        except BenchmarkError as error:
            raise CommandError(str(error)) from None
        except subprocess.TimeoutExpired:
            problem = f"did not end within {seconds / 60:.0f} minutes"
        finally:
            if process is not None:
                if process.returncode is None:
                    kill_group(process)
                output, errors = process.communicate()
                with log.open("a", encoding="utf-8") as file:
                    file.write(f"$ {line}\n{output}{errors}\n")
        if problem:
            lines = [each for each in (output + errors).splitlines() if each.strip()]
            last = "\n".join(f"    {each}" for each in lines[-_LAST_LINES:])
            raise CommandError(f"`{line}` {problem}\n{last}")
        return output

    return run
