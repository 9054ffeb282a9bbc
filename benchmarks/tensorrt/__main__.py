"""`make bench-tensorrt`: the TensorRT container on the CPU, against the published layout."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.comparison import measure_models
from benchmarks.driver import Driver, measure_driver
from benchmarks.machine import describe_machine
from benchmarks.overhead import Costs, measure_overhead
from benchmarks.program import BUILD, Parser, Say, positive, run, stop_on_signals
from benchmarks.servers import server_variables
from benchmarks.tensorrt.design import LONGEST_SECONDS, Design, full_design, quick
from benchmarks.tensorrt.report import as_json, as_markdown
from benchmarks.tensorrt.session import measure_model
from benchmarks.tensorrt.summary import summarize
from benchmarks.tensorrt.workloads import make_requests

_DRIVER_CONCURRENCIES = (1, 8)
# Eight requests of ten texts, so that all requests of the goal's concurrency can share a batch.
_MAX_BATCH_SIZE = 80
# Of each load over the model that computes nothing.
_OVERHEAD_SECONDS = 3.0


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.tensorrt", __doc__, "tensorrt")
    parser.add_quick_option("a minute of everything with small models")
    parser.add_argument("--trials", type=positive, default=6, help="of what a goal is about")
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
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _design(options: argparse.Namespace) -> Design:
    all_cores = 1 if options.quick else describe_machine((), ()).core_count
    design = full_design(
        trials=options.trials,
        stated_trials=options.stated_trials,
        cores=options.cores or all_cores,
        max_batch_size=options.max_batch_size,
        workers=options.workers,
        longest_seconds=options.longest_seconds,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design = _design(options)
    requests = make_requests(design.workloads[0], design.models[0], design.seed)

    def alone(log: Path, say: Say) -> tuple[Driver, Costs]:
        bodies = [request.body for request in requests]
        driver = measure_driver(bodies, _DRIVER_CONCURRENCIES, design.seconds, log)
        say("the server over a model that computes nothing")
        costs = measure_overhead(
            design.overhead_starts,
            design.seconds or _OVERHEAD_SECONDS,
            seed=design.seed,
            variables=server_variables(os.environ),
            say=say,
        )
        return driver, costs

    (driver, costs), sessions, context = measure_models(
        options,
        "bench-tensorrt",
        design.models,
        alone,
        lambda model, folder, say: measure_model(
            design, model, folder, models=BUILD / "models", say=say
        ),
    )
    summary = summarize(design, sessions, costs)
    return (
        as_json(design, summary, costs, driver, context),
        as_markdown(design, summary, driver, context),
    )


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
