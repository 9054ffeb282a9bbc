"""Runs the tasks: one fresh process after the other."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.config_language.design import Task
from benchmarks.errors import BenchmarkError
from benchmarks.execution import run_timed
from benchmarks.program import ROOT, Say
from benchmarks.readings import Readings
from benchmarks.trials import Trial, carry_out, shuffled

PROBE = Path(__file__).with_name("probe.py")
_LEFT_OUT = ("AWS_", "PYDANTIC_", "PYTHON", "SLIPWAY_")


def probe_variables(environ: Mapping[str, str]) -> dict[str, str]:
    kept = {name: value for name, value in environ.items() if not name.startswith(_LEFT_OUT)}
    return {**kept, "PYTHONPATH": str(ROOT)}


def run_probe(task: Task, project: Path, variables: Mapping[str, str]) -> Readings:
    command = (sys.executable, "-P", str(PROBE), *task.arguments)
    timing, output = run_timed(command, project, variables)
    if not output.startswith(task.output):
        raise BenchmarkError(
            f"`{' '.join(task.arguments)}` ended well, but did not do what it was timed for\n"
            f"{output}"
        )
    readings: dict[str, float] = json.loads(output.splitlines()[-1])
    return {
        **readings,
        "process_seconds": timing.seconds,
        "processor_seconds": timing.processor_seconds,
    }


def measure(
    tasks: Sequence[Task], project: Path, *, trials: int, seed: int, say: Say
) -> tuple[Trial[Task, Readings], ...]:
    """Runs every task once a round, after an unmeasured round that compiles the bytecode."""
    variables = probe_variables(os.environ)
    # Plans first, so that a wrong template is reported once and not for each config made of it.
    for task in reversed(tasks):
        say(f"not timed: {task.key}")
        run_probe(task, project, variables)
    return carry_out(
        shuffled([tasks] * trials, seed),
        lambda task: run_probe(task, project, variables),
        lambda task, readings: f"{readings['process_seconds']:5.2f} s  {task.key}",
        say,
    )
