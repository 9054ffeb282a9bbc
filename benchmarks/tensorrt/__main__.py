"""`make bench-tensorrt`: the TensorRT container on the CPU, against the published layout."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.baselines.stack import check_requirements, nginx_version
from benchmarks.machine import describe_machine
from benchmarks.program import ROOT, Parser, Run, positive, run, stop_on_signals
from benchmarks.tensorrt.design import LONGEST_SECONDS, Design, full_design, quick_design
from benchmarks.tensorrt.report import Setting, as_json, as_markdown
from benchmarks.tensorrt.session import measure_driver, measure_model
from benchmarks.tensorrt.summary import summarize

_RESULT = "tensorrt"
_RESULTS = ROOT / "benchmarks" / "results"
_BUILD = ROOT / "build" / "benchmarks"
_PACKAGES = (
    "flask",
    "gunicorn",
    "numpy",
    "onnxruntime",
    "starlette",
    "tokenizers",
    "torch",
    "transformers",
    "uvicorn",
)
# Eight requests of ten texts, so that all requests of the goal's concurrency can share a batch.
_MAX_BATCH_SIZE = 80


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.tensorrt", __doc__, _RESULT)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="a minute of everything with small models, to see that it works: the result goes to "
        f"{(_BUILD / 'quick').relative_to(ROOT)}, never to benchmarks/results",
    )
    parser.add_argument("--trials", type=positive, default=3, help="of what a goal is about")
    parser.add_argument("--stated-trials", type=positive, default=1, help="of everything else")
    parser.add_argument(
        "--max-batch-size",
        type=positive,
        default=_MAX_BATCH_SIZE,
        help="SLIPWAY_MAX_BATCH_SIZE of Slipway's server, in texts",
    )
    parser.add_argument(
        "--cores",
        type=positive,
        default=None,
        help="for every server to use, by its number of threads; by default all, and one if quick",
    )
    parser.add_argument(
        "--workers",
        type=positive,
        default=None,
        help="of the published layout; by default those that serve it best are measured",
    )
    parser.add_argument(
        "--longest-seconds",
        type=positive,
        default=round(LONGEST_SECONDS),
        help="leave cells out where the published layout would answer later; SageMaker's limit",
    )
    options = parser.parse_args(arguments)
    if options.quick and options.output.resolve() == _RESULTS:
        options.output = _BUILD / "quick"
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    options = parse(given)
    command = shlex.join(["python", "-m", "benchmarks.tensorrt", *given])
    return run(options, _RESULT, lambda: _measure(_design(options), command))


def _design(options: argparse.Namespace) -> Design:
    if options.quick:
        return quick_design(
            cores=options.cores or 1,
            max_batch_size=options.max_batch_size,
            workers=options.workers,
            longest_seconds=options.longest_seconds,
            seed=options.seed,
        )
    return full_design(
        trials=options.trials,
        stated_trials=options.stated_trials,
        cores=options.cores or describe_machine((), ()).core_count,
        max_batch_size=options.max_batch_size,
        workers=options.workers,
        longest_seconds=options.longest_seconds,
        seed=options.seed,
    )


def _measure(design: Design, command: str) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    check_requirements("bench-tensorrt")
    session = Run((), _PACKAGES)
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as temporary:
        driver = measure_driver(design, Path(temporary), session.say)
        sessions = []
        for model in design.models:
            folder = Path(temporary, model.name)
            folder.mkdir()
            sessions.append(
                measure_model(design, model, folder, models=_BUILD / "models", say=session.say)
            )
    context = session.end()
    context.machine.versions["nginx"] = nginx_version()
    setting = Setting(command, driver)
    summary = summarize(design, sessions)
    return (
        as_json(design, summary, setting, context),
        as_markdown(design, summary, setting, context),
    )


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
