"""`make bench`: times a user's commands, in projects of 1 to 500 model configs."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.control_plane.design import Design
from benchmarks.control_plane.report import as_json, as_markdown
from benchmarks.control_plane.session import measure
from benchmarks.control_plane.summary import summarize
from benchmarks.control_plane.workspace import Workspace
from benchmarks.program import Parser, Run, positive, run, stop_on_signals

_MAX_CONFIGS = 5000


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.control_plane", __doc__, "control-plane")
    parser.add_argument(
        "--sizes", type=_sizes, default="1,10,100,500", help="numbers of configs, with commas"
    )
    parser.add_argument("--trials", type=positive, default=7, help="of each command and size")
    parser.add_argument(
        "--stated-trials",
        type=positive,
        default=3,
        help="of the cdk commands without `-c models`: slow, and only stated",
    )
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design = Design(
        sizes=options.sizes,
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        seed=options.seed,
    )
    session = Run(("node", "cdk"), ("aws-cdk-lib", "jsii", "pydantic"))
    with (
        tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as folder,
        Workspace(Path(folder), session.say) as workspace,
    ):
        workspace.prepare(design.sizes)
        trials = measure(design, workspace.run, session.say)
        session.say("stopping the embedded AWS")
    context = session.end()
    summary = summarize(design, trials)
    return as_json(design, summary, context), as_markdown(design, summary, context)


def _sizes(text: str) -> tuple[int, ...]:
    sizes = sorted({positive(part.strip()) for part in text.split(",")})
    if sizes[-1] > _MAX_CONFIGS:
        raise argparse.ArgumentTypeError(f"{sizes[-1]} is more than {_MAX_CONFIGS} configs")
    return tuple(sizes)


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
