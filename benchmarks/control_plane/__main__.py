"""`make bench`: times a user's commands, in projects of 1 to 500 model configs."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.control_plane.report import Cell, cells_of, page, result
from benchmarks.control_plane.workspace import Workspace
from benchmarks.execution import Timing
from benchmarks.program import Benchmark, Run, add_trial_options, positive
from benchmarks.report import counted
from benchmarks.trials import carry_out, rounds_of

_MAX_CONFIGS = 5000


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sizes", type=_sizes, default="1,10,100,500", help="numbers of configs, with commas"
    )
    add_trial_options(parser, 7, 3)


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted({positive(part.strip()) for part in text.split(",")})
    if sizes[-1] > _MAX_CONFIGS:
        raise argparse.ArgumentTypeError(f"{sizes[-1]} is more than {_MAX_CONFIGS} configs")
    return tuple(sizes)


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    stated_trials = min(options.stated_trials, options.trials)
    rounds = rounds_of(
        cells_of(options.sizes),
        lambda cell: stated_trials if cell.command.is_only_stated else options.trials,
        options.seed,
    )
    run = Run(("node", "cdk"), ("aws-cdk-lib", "jsii", "pydantic"), options.command)
    with (
        tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as folder,
        Workspace(Path(folder), run.say) as workspace,
    ):
        workspace.prepare(options.sizes)
        trials = carry_out(rounds, workspace.run, _described, run.say)
        run.say("stopping the embedded AWS")
    design = {
        "sizes": options.sizes,
        "trials": options.trials,
        "stated_trials": stated_trials,
        "seed": options.seed,
    }
    return run, {"design": design, **result(options.sizes, trials, options.seed)}


def _described(cell: Cell, timing: Timing) -> str:
    configs = counted(cell.config_count, "config")
    return f"{timing.seconds:6.2f} s  {cell.command.typed}, {configs}"


BENCHMARK = Benchmark("control-plane", __doc__, _add_options, _measure, page)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
