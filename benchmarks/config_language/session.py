"""Carries out the design: one fresh process after the other."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.config_language.design import Design, Readings, Task
from benchmarks.errors import BenchmarkError
from benchmarks.execution import run_timed
from benchmarks.trials import Trial, carry_out

PROBE = Path(__file__).with_name("probe.py")
_LEFT_OUT = ("AWS_", "PYDANTIC_", "PYTHON", "SLIPWAY_")


def probe_variables(environ: Mapping[str, str], root: Path) -> dict[str, str]:
    """Returns the user's variables, without those that change how Python works."""
    kept = {name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)}
    return {**kept, "PYTHONPATH": str(root)}


def run_probe(task: Task, folder: Path, variables: Mapping[str, str]) -> Readings:
    """Runs one task in a fresh process.

    Raises:
        BenchmarkError: the process failed, or did not do its work.
    """
    command = (sys.executable, "-P", str(PROBE), *task.arguments)
    timing, output = run_timed(command, folder, variables)
    if not output.startswith(task.output):
        raise BenchmarkError(
            f"`{' '.join(task.arguments)}` ended well, but did not do what it was timed for\n"
            f"{output}"
        )
    readings: dict[str, float] = json.loads(output.splitlines()[-1])
    return {**readings, "process_seconds": timing.seconds}


def measure(
    design: Design, folder: Path, root: Path, say: Callable[[str], None]
) -> tuple[Trial[Task, Readings], ...]:
    """Runs every trial, after an unmeasured round that compiles the bytecode.

    Args:
        design: the plan of the run.
        folder: the project.
        root: root of the measured Slipway.
        say: called with lines of progress.

    Returns:
        The trials in the order in which they ran.

    Raises:
        BenchmarkError: a process failed.
    """
    variables = probe_variables(os.environ, root)
    # Plans first, so that a wrong template is reported once and not for each config made of it.
    for task in reversed(design.tasks):
        say(f"not timed: {task.key}")
        run_probe(task, folder, variables)
    return carry_out(
        design.rounds(),
        lambda task: run_probe(task, folder, variables),
        lambda task, readings: f"{readings['process_seconds']:5.2f} s  {task.key}",
        say,
    )
