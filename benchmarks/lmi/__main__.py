"""`make bench-lmi`: DJL Serving beside Slipway's serving core, and an S3 prefix beside a tar.gz."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.lmi.design import Design, Part, full_design, quick
from benchmarks.lmi.djl import find_djl_serving
from benchmarks.lmi.report import as_json, as_markdown
from benchmarks.lmi.serving import measure_serving
from benchmarks.lmi.summary import summarize
from benchmarks.lmi.transfers import check_programs, program_versions
from benchmarks.lmi.weights import check_disk, measure_weights
from benchmarks.machine import describe_machine
from benchmarks.program import BUILD, Parser, Run, positive, run, stop_on_signals

_PACKAGES = ("numpy", "onnxruntime", "starlette", "tokenizers", "uvicorn")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.lmi", __doc__, "lmi")
    parser.add_quick_option("everything once with little")
    parser.add_argument(
        "--part",
        type=Part,
        choices=tuple(Part),
        default=None,
        help="one of the two alone; the result then goes where that of --quick goes",
    )
    parser.add_argument("--trials", type=positive, default=6, help="starts of each server")
    parser.add_argument(
        "--transfer-trials", type=positive, default=6, help="of each way to fetch the weights"
    )
    parser.add_argument(
        "--cores",
        type=positive,
        default=None,
        help="threads that every server computes with; by default all cores, and one if quick",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        default=BUILD,
        metavar="DIR",
        help="where the weights are fetched to, on the disk that is to be measured",
    )
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _design(options: argparse.Namespace) -> Design:
    # PyTorch's threads wait for each other in a busy loop, which is very slow beside other work.
    all_cores = 1 if options.quick else describe_machine((), ()).core_count
    design = full_design(
        parts=(options.part,) if options.part else tuple(Part),
        trials=options.trials,
        transfer_trials=options.transfer_trials,
        cores=options.cores or all_cores,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design, folder = _design(options), options.folder
    # Everything that may be missing is checked before anything is timed.
    djl_serving = find_djl_serving(os.environ) if Part.SERVING in design.parts else None
    if Part.WEIGHTS in design.parts:
        check_programs()
        check_disk(design, folder)
    session = Run((), _PACKAGES, options.command)
    serving = weights = None
    if djl_serving:
        # Not in `folder`, because a socket's path may not be long.
        with tempfile.TemporaryDirectory(prefix="slipway-lmi-") as temporary:
            serving = measure_serving(design, djl_serving, Path(temporary), session.say)
    if Part.WEIGHTS in design.parts:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="lmi-", dir=folder) as temporary:
            weights = measure_weights(design, Path(temporary), session.say)
    context = session.end()
    versions = context.machine.versions
    versions |= program_versions()
    if djl_serving:
        versions |= {"DJL Serving": djl_serving.version, "Java": djl_serving.java}
        versions |= djl_serving.packages
    summary = summarize(design, serving, weights)
    return as_json(design, summary, context), as_markdown(design, summary, context)


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
