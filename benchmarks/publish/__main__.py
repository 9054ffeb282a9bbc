"""`make bench-publish`: `slipway publish` beside s5cmd and the AWS CLI."""

import argparse
import os
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.program import BUILD, Benchmark, Run, add_trial_options, positive
from benchmarks.publish.design import GIGABYTE, MEGABYTE, Design, Size, Work
from benchmarks.publish.report import page, result
from benchmarks.publish.session import measure
from benchmarks.publish.storage import find_server

_PACKAGES = ("awscli", "boto3", "s5cmd")
_SIZES = {
    "large": Size(20, 200 * MEGABYTE),
    "small": Size(10_000, 20_000),
    "prefix": Size(500, 700 * MEGABYTE),
}
_QUICK_SIZES = {
    "large": Size(2, MEGABYTE),
    "small": Size(20, 20_000),
    "prefix": Size(5, GIGABYTE),
}
# The small files are also published without a change.
_FILES = {
    Work.LARGE: "large",
    Work.SMALL: "small",
    Work.UNCHANGED: "small",
    Work.PREFIX: "prefix",
}


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_trial_options(parser, 5)
    for name, size in _SIZES.items():
        parser.add_argument(
            f"--{name}-files", type=positive, default=size.file_count, metavar="COUNT",
            help=f"number of {name} files",
        )  # fmt: skip
        parser.add_argument(
            f"--{name}-bytes", type=positive, default=size.file_bytes, metavar="BYTES",
            help="size of each of them",
        )  # fmt: skip
    parser.add_argument(
        "--folder", type=Path, default=BUILD, metavar="DIR", help="on the disk that is measured"
    )


def design_of(options: argparse.Namespace) -> Design:
    """Returns the design that the options ask for."""
    given = vars(options)
    sizes = {name: Size(given[f"{name}_files"], given[f"{name}_bytes"]) for name in _SIZES}
    if options.quick:
        sizes = _QUICK_SIZES
    return Design(
        trials=2 if options.quick else options.trials,
        seed=options.seed,
        is_quick=options.quick,
        sizes={work: sizes[name] for work, name in _FILES.items()},
    )


# Any: JSON.
def _measure(options: argparse.Namespace) -> tuple[Run, dict[str, Any]]:
    design, server = design_of(options), find_server(os.environ)
    run = Run((), _PACKAGES, options.command)
    run.versions["versitygw"] = server.parent.name
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="publish-", dir=options.folder) as temporary:
        trials = measure(design, server, Path(temporary), run.say)
    return run, {"design": asdict(design), **result(trials, design.seed)}


BENCHMARK = Benchmark(
    "publish",
    __doc__,
    _add_options,
    _measure,
    page,
    quick="everything twice, with some files of a megabyte at most",
)

if __name__ == "__main__":
    sys.exit(BENCHMARK.main())
