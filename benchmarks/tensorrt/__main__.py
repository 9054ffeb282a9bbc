"""`make bench-tensorrt`: the TensorRT container on the CPU, against the published layout."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.baselines.stack import check_requirements, nginx_version
from benchmarks.machine import core_count
from benchmarks.overhead import measure_overhead
from benchmarks.program import BUILD, Benchmark, Run, add_trial_options, positive
from benchmarks.servers import PACKAGES, measure_driver
from benchmarks.tensorrt.design import Design, quick
from benchmarks.tensorrt.report import LATENCIES, page, result
from benchmarks.tensorrt.session import measure_model
from benchmarks.tensorrt.workloads import make_requests

_DRIVER_CONCURRENCIES = (1, 8)
# Of each load over the model that computes nothing.
_OVERHEAD_SECONDS = 3.0


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, Design.trials, Design.stated_trials)
    parser.add_argument(
        "--max-batch-size",
        type=positive,
        default=Design.max_batch_size,
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
        default=round(Design.longest_seconds),
        help="leave cells out where the published layout would answer later; SageMaker's limit",
    )


def _design(options: argparse.Namespace) -> Design:
    design = Design(
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        cores=options.cores or (1 if options.quick else core_count()),
        max_batch_size=options.max_batch_size,
        workers=options.workers,
        longest_seconds=options.longest_seconds,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    check_requirements("bench-tensorrt")
    design = _design(options)
    requests = make_requests(design.workloads[0], design.models[0], design.seed)
    run = Run((), ("flask", "gunicorn", *PACKAGES), options.command)
    run.versions["nginx"] = nginx_version()
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as temporary:
        run.say("the load driver alone")
        driver = measure_driver(
            [request.body for request in requests],
            _DRIVER_CONCURRENCIES,
            LATENCIES,
            seconds=design.seconds,
            log=Path(temporary, "idle.log"),
        )
        run.say("the server over a model that computes nothing")
        costs = measure_overhead(
            design.overhead_starts,
            design.seconds or _OVERHEAD_SECONDS,
            seed=design.seed,
            say=run.say,
        )
        sessions = [
            measure_model(design, model, Path(temporary), models=BUILD / "models", say=run.say)
            for model in design.models
        ]
    return run, {**result(design, sessions, costs), "driver": driver}


BENCHMARK = Benchmark(
    "tensorrt",
    __doc__,
    _add_options,
    _measure,
    page,
    quick="a minute of everything with small models",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
