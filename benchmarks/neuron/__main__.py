"""`make bench-neuron`: the Neuron container on the CPU, against a naive TorchScript server."""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.baselines.stack import check_requirements, nginx_version
from benchmarks.neuron.design import Design, quick
from benchmarks.neuron.models import SAMPLE_TOKENIZER
from benchmarks.neuron.report import LATENCIES, page, result
from benchmarks.neuron.session import measure_model
from benchmarks.neuron.workloads import make_requests
from benchmarks.program import BUILD, Benchmark, Run, add_trial_options
from benchmarks.servers import PACKAGES, measure_driver

_DRIVER_CONCURRENCIES = (1, 16)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, Design.trials, Design.stated_trials)


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    check_requirements("bench-neuron")
    design = Design(
        trials=options.trials,
        stated_trials=min(options.stated_trials, options.trials),
        seed=options.seed,
    )
    if options.quick:
        design = quick(design)
    requests = make_requests(design.workloads[0], SAMPLE_TOKENIZER, design.seed)
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
        sessions = [
            measure_model(design, model, Path(temporary), models=BUILD / "models", say=run.say)
            for model in design.models
        ]
    return run, {**result(design, sessions), "driver": driver}


BENCHMARK = Benchmark(
    "neuron",
    __doc__,
    _add_options,
    _measure,
    page,
    quick="a minute of everything with small models",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
