"""`make bench-triton`: T5 spelling correction on Triton, beside other ways to serve the model."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.driver import measure_driver
from benchmarks.program import Parser, Run, positive, run, stop_on_signals
from benchmarks.triton.design import Design, full_design, quick
from benchmarks.triton.queries import QUERIES, body
from benchmarks.triton.report import as_json, as_markdown
from benchmarks.triton.servers import find_triton
from benchmarks.triton.session import measure
from benchmarks.triton.summary import summarize
from embedded_aws.hosting.families.triton.triton_server import VERSION

_PACKAGES = ("numpy", "onnxruntime", "starlette", "tokenizers", "torch", "transformers", "uvicorn")


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.triton", __doc__, "triton")
    parser.add_quick_option("everything once or twice for a moment")
    parser.add_argument("--trials", type=positive, default=7, help="of what a goal is about")
    parser.add_argument("--stated-trials", type=positive, default=1, help="of everything else")
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _design(options: argparse.Namespace) -> Design:
    design = full_design(
        trials=options.trials,
        stated_trials=options.stated_trials,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design, triton = _design(options), find_triton(os.environ)
    current = Run((), _PACKAGES, options.command)
    with tempfile.TemporaryDirectory(prefix="slipway-triton-") as temporary:
        folder = Path(temporary)
        current.say("the load driver alone")
        driver = measure_driver(
            list(map(body, QUERIES)), design.concurrencies, design.seconds, folder / "idle.log"
        )
        session = measure(design, triton, folder, current.say)
    context = current.end()
    context.machine.versions["Triton"] = VERSION
    summary = summarize(design, session)
    return (
        as_json(design, summary, driver, context),
        as_markdown(design, summary, driver, context),
    )


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
