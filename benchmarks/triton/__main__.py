"""`make bench-triton`: T5 spelling correction on Triton, beside other ways to serve the model."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.driver import measure_driver
from benchmarks.program import Benchmark, Run, add_trial_options
from benchmarks.servers import PACKAGES
from benchmarks.triton.design import Design, quick
from benchmarks.triton.queries import QUERIES, body
from benchmarks.triton.report import LATENCIES, page, result
from benchmarks.triton.servers import find_triton
from benchmarks.triton.session import measure
from slipway.embedded_aws.hosting.families.triton.triton_server import VERSION


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, Design.trials, Design.stated_trials)


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    triton = find_triton(os.environ)
    design = Design(
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        seed=options.seed,
    )
    if options.quick:
        design = quick(design)
    run = Run((), PACKAGES, options.command)
    run.versions["Triton"] = VERSION
    with tempfile.TemporaryDirectory(prefix="slipway-triton-") as temporary:
        folder = Path(temporary)
        run.say("the load driver alone")
        driver = measure_driver(
            list(map(body, QUERIES)),
            design.concurrencies,
            LATENCIES,
            seconds=design.seconds,
            log=folder / "idle.log",
        )
        session = measure(design, triton, folder, run.say)
    return run, {**result(design, session), "driver": driver}


BENCHMARK = Benchmark(
    "triton",
    __doc__,
    _add_options,
    _measure,
    page,
    quick="everything once or twice for a moment",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
