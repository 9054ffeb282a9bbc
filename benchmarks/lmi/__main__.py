"""`make bench-lmi`: DJL Serving beside Slipway's serving core, and an S3 prefix beside a tar.gz."""

import argparse
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.lmi.design import Design, Part, quick
from benchmarks.lmi.report import page, result
from benchmarks.lmi.servers import find_djl_serving
from benchmarks.lmi.serving import measure_serving
from benchmarks.lmi.transfers import check_programs, program_versions
from benchmarks.lmi.weights import check_disk, measure_weights
from benchmarks.machine import core_count
from benchmarks.program import BUILD, Benchmark, Run, positive

_PACKAGES = ("numpy", "onnxruntime", "starlette", "tokenizers", "uvicorn")


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--part",
        type=Part,
        choices=tuple(Part),
        default=None,
        help="one of the two alone; the result then goes where that of --quick goes",
    )
    parser.add_argument(
        "--trials", type=positive, default=Design.trials, help="starts of each server"
    )
    parser.add_argument(
        "--transfer-trials",
        type=positive,
        default=Design.transfer_trials,
        help="of each way to fetch the weights",
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


def _design(options: argparse.Namespace) -> Design:
    # PyTorch's threads wait for each other in a busy loop, which is very slow beside other work.
    all_cores = 1 if options.quick else core_count()
    design = Design(
        parts=(options.part,) if options.part else tuple(Part),
        trials=options.trials,
        transfer_trials=options.transfer_trials,
        cores=options.cores or all_cores,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    design, folder = _design(options), options.folder
    # Everything that may be missing is checked before anything is timed.
    djl_serving = find_djl_serving(os.environ) if Part.SERVING in design.parts else None
    if Part.WEIGHTS in design.parts:
        check_programs()
        check_disk(design, folder)
    run = Run((), _PACKAGES, options.command)
    if Part.WEIGHTS in design.parts:
        run.versions.update(program_versions())
    serving = weights = None
    if djl_serving:
        run.versions.update({"DJL Serving": djl_serving.version, "Java": djl_serving.java})
        run.versions.update(djl_serving.packages)
        # Not in `folder`, because a socket's path may not be long.
        with tempfile.TemporaryDirectory(prefix="slipway-lmi-") as temporary:
            serving = measure_serving(design, djl_serving, Path(temporary), run.say)
    if Part.WEIGHTS in design.parts:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="lmi-", dir=folder) as temporary:
            weights = measure_weights(design, Path(temporary), run.say)
    return run, result(design, serving, weights)


BENCHMARK = Benchmark(
    "lmi", __doc__, _add_options, _measure, page, quick="everything once with little"
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
