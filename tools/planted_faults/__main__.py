"""`python -m tools.planted_faults`: see the package."""

import argparse
import functools
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tools.planted_faults import PlantedFaultsError, reports
from tools.planted_faults.copies import Copy
from tools.planted_faults.faults import choose
from tools.planted_faults.planting import Outcome, Planting, as_json
from tools.planted_faults.recording import SIZES, Recording, record, tests_file

_ROOT: Final = Path(__file__).parents[2]
_DATA: Final = Path("build", "planted_faults", "coverage")


def main(arguments: Sequence[str] | None = None, root: Path = _ROOT) -> int:
    """Runs the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options, root)
    except PlantedFaultsError as error:
        print(error, file=sys.stderr)
        return 1
    return status


def _record(options: argparse.Namespace, root: Path) -> int:
    data = _data(options, root)
    started = time.monotonic()
    status = record(root, data, options.size, options.pytest, branches=not options.lines_only)
    tests = json.loads(tests_file(data).read_text("utf-8"))["tests"]
    others = sorted(name for name, test in tests.items() if not test["passed"])
    print(
        f"{data}: {data.stat().st_size / 2**20:.0f} MiB after {time.monotonic() - started:.0f} s; "
        f"pytest ended with status {status}; {len(tests) - len(others)} tests passed"
    )
    if others:
        print("\n  ".join(["These did not pass and notice nothing:", *others]))
    return 0


def _plant(options: argparse.Namespace, root: Path) -> int:
    # Progress goes to standard error, so that it does not mix with --json.
    progress = functools.partial(print, file=sys.stderr, flush=True)
    if options.seed is None:
        raise PlantedFaultsError("--seed says which faults: any number")
    recording = Recording(root, _data(options, root), options.size)
    faults = choose(root, options.seed, options.faults, options.within)
    progress(f"{len(faults)} faults; {len(recording)} tests are recorded")
    outcomes: list[Outcome] = []
    with Copy(root) as copy:
        planting = Planting(copy, recording, options.size, options.minutes_per_fault * 60)
        for outcome in planting.outcomes(faults, progress):
            outcomes.append(outcome)
            progress(f"    {reports.outcome(as_json([outcome])[0])}")
    rows = as_json(outcomes)
    if options.json:
        told = {"seed": options.seed, "size": options.size, "faults": rows}
        print(json.dumps(told, indent=2))
    else:
        print("\n".join(reports.table(rows)))
    return 0


def _compare(options: argparse.Namespace, root: Path) -> int:
    del root
    print("\n".join(reports.compare(reports.read(options.first), reports.read(options.second))))
    return 0


def _coverage(options: argparse.Namespace, root: Path) -> int:
    packages = reports.coverage_by_package(root, _data(options, root))
    if options.json:
        print(json.dumps(packages, indent=2))
    else:
        print("\n".join(reports.coverage_table(packages)))
    return 0


def _data(options: argparse.Namespace, root: Path) -> Path:
    data: Path = options.data or root / _DATA
    return data.resolve()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tools.planted_faults",
        description="Plant small faults, one at a time, and say which the tests notice.",
    )
    parser.set_defaults(run=_plant)
    _add_data(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="chooses the faults")
    parser.add_argument(
        "--faults", type=int, default=40, metavar="N", help="how many (default: %(default)s)"
    )
    parser.add_argument(
        "--size", choices=SIZES, default="all", help="the largest tests (default: %(default)s)"
    )
    parser.add_argument(
        "--within",
        action="append",
        default=[],
        metavar="PATH",
        help="only in this file or folder of the project; can be repeated",
    )
    parser.add_argument(
        "--minutes-per-fault", type=float, default=3.0, metavar="N", help="default: %(default)s"
    )
    parser.add_argument("--json", action="store_true", help="print the outcomes as JSON")
    commands = parser.add_subparsers(title="other commands", metavar="")

    recording = commands.add_parser("record", help="run tests and keep which executes which line")
    recording.set_defaults(run=_record)
    _add_data(recording)
    recording.add_argument("--size", choices=SIZES, default="all", help="default: %(default)s")
    recording.add_argument(
        "--lines-only", action="store_true", help="no branches: the file is a tenth as large"
    )
    recording.add_argument("pytest", nargs="*", help="paths and options of pytest, after --")

    comparison = commands.add_parser("compare", help="say which faults only one run noticed")
    comparison.set_defaults(run=_compare)
    comparison.add_argument("first", type=Path, help="what --json printed")
    comparison.add_argument("second", type=Path)

    covered = commands.add_parser("coverage", help="what a recording executed of each package")
    covered.set_defaults(run=_coverage)
    _add_data(covered)
    covered.add_argument("--json", action="store_true")
    return parser


def _add_data(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, help=f"the recording (default: {_DATA})")


if __name__ == "__main__":
    sys.exit(main())
