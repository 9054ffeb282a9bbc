"""`make bench-neuron`: the Neuron container on the CPU, against a naive TorchScript server."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from benchmarks.comparison import measure_models
from benchmarks.driver import measure_driver
from benchmarks.neuron.design import Design, full_design, quick
from benchmarks.neuron.models import SAMPLE_TOKENIZER
from benchmarks.neuron.report import as_json, as_markdown
from benchmarks.neuron.session import measure_model
from benchmarks.neuron.summary import summarize
from benchmarks.neuron.workloads import make_requests
from benchmarks.program import BUILD, Parser, positive, run, stop_on_signals

_DRIVER_CONCURRENCIES = (1, 16)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.neuron", __doc__, "neuron")
    parser.add_quick_option("a minute of everything with small models")
    parser.add_argument("--trials", type=positive, default=6, help="of what a goal is about")
    parser.add_argument("--stated-trials", type=positive, default=1, help="of everything else")
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _design(options: argparse.Namespace) -> Design:
    design = full_design(
        trials=options.trials, stated_trials=options.stated_trials, seed=options.seed
    )
    return quick(design) if options.quick else design


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design = _design(options)
    requests = make_requests(design.workloads[0], SAMPLE_TOKENIZER, design.seed)
    driver, sessions, context = measure_models(
        options,
        "bench-neuron",
        design.models,
        lambda log, _say: measure_driver(
            [request.body for request in requests], _DRIVER_CONCURRENCIES, design.seconds, log
        ),
        lambda model, folder, say: measure_model(
            design, model, folder, models=BUILD / "models", say=say
        ),
    )
    summaries = summarize(design, sessions)
    return (
        as_json(design, summaries, driver, context),
        as_markdown(design, summaries, driver, context),
    )


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
