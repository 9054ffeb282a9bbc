"""`make bench-publish`: `slipway publish` beside s5cmd and the AWS CLI."""

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.program import BUILD, Parser, Run, positive, run, stop_on_signals
from benchmarks.publish.design import MEGABYTE, Design, Size, full_design, quick
from benchmarks.publish.report import as_json, as_markdown
from benchmarks.publish.session import measure
from benchmarks.publish.storage import find_server
from benchmarks.publish.summary import summarize

_PACKAGES = ("awscli", "boto3", "s5cmd")
_LARGE = Size(20, 200 * MEGABYTE)
_SMALL = Size(10_000, 20_000)
_PREFIX = Size(500, 700 * MEGABYTE)


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Parses the command line; an invalid one ends the process with 1."""
    parser = Parser("benchmarks.publish", __doc__, "publish")
    parser.add_quick_option("everything twice, with some files of a megabyte at most")
    parser.add_argument("--trials", type=positive, default=5, help="of each measurement")
    for name, size in (("large", _LARGE), ("small", _SMALL), ("prefix", _PREFIX)):
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
    return parser.parse(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures, writes the results and prints them; returns the exit code."""
    return run(parse(arguments), _measure)


def _design(options: argparse.Namespace) -> Design:
    design = full_design(
        large=Size(options.large_files, options.large_bytes),
        small=Size(options.small_files, options.small_bytes),
        prefix=Size(options.prefix_files, options.prefix_bytes),
        trials=options.trials,
        seed=options.seed,
    )
    return quick(design) if options.quick else design


def _measure(options: argparse.Namespace) -> tuple[dict[str, Any], str]:
    """Measures; returns the JSON document and the page."""
    design, server = _design(options), find_server(os.environ)
    current = Run((), _PACKAGES, options.command)
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="publish-", dir=options.folder) as temporary:
        session = measure(design, server, Path(temporary), current.say)
    context = current.end()
    context.machine.versions["versitygw"] = server.parent.name
    summary = summarize(design, session)
    return as_json(design, summary, context), as_markdown(design, summary, context)


if __name__ == "__main__":
    stop_on_signals()
    sys.exit(main())
