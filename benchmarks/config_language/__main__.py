"""`make bench-config`: time and memory of reading, checking and planning 1,000 configs."""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.config_language.configs import change_one, find_templates, write_project
from benchmarks.config_language.report import GOAL_CONFIGS, Task, page, result, tasks
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Readings
from benchmarks.execution import run_timed
from benchmarks.program import ROOT, Benchmark, Run, Say, add_trial_options, positive
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


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--configs", type=positive, default=GOAL_CONFIGS, help="of the project")
    add_trial_options(parser, 15)


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    run = Run((), ("pydantic", "PyYAML", "typer"), options.command)
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as folder:
        project = Path(folder)
        run.say(f"making {options.configs} configs")
        first = write_project(project, find_templates(ROOT), options.configs, options.seed)
        change_one(project, next(iter(first.values())))
        trials = measure(
            tasks(options.configs, first.items()),
            project,
            trials=options.trials,
            seed=options.seed,
            say=run.say,
        )
    design = {
        "config_count": options.configs,
        "trials": options.trials,
        "seed": options.seed,
        "templates": list(first),
    }
    return run, {"design": design, **result(design, trials)}


BENCHMARK = Benchmark("config-language", __doc__, _add_options, _measure, page)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
