"""`make bench-config`: time and memory of reading, checking and planning 1,000 configs."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.config_language.configs import change_one, find_templates, write_project
from benchmarks.config_language.design import GOAL_CONFIGS, tasks
from benchmarks.config_language.report import page, result
from benchmarks.config_language.session import measure
from benchmarks.program import ROOT, Benchmark, Run, add_trial_options, positive


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
