"""The harness of the benchmarks: command lines, progress, results and exit codes.

A benchmark says what is special about it as a `Benchmark`: its options, what it measures, and the
page that is made of the measurements.
"""

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe_commit, describe_machine
from benchmarks.report import Context, Document
from slipway.embedded_aws.errors import LocalAwsError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BUILD = ROOT / "build" / "benchmarks"  # folder for what a benchmark makes and keeps, such as models

Say = Callable[[str], None]

_QUICK_RESULTS = BUILD / "quick"


class ExitOneParser(argparse.ArgumentParser):
    """A parser that exits with 1, the code of every error that a user can fix, and not with 2."""

    def error(self, message: str) -> NoReturn:
        """Prints the error and exits."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


def positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def add_trial_options(
    parser: argparse.ArgumentParser, trials: int, stated_trials: int | None = None
) -> None:
    """Adds `--trials`, and `--stated-trials` for a benchmark with measurements without a goal."""
    of_what = "each measurement" if stated_trials is None else "what a goal is about"
    parser.add_argument("--trials", type=positive, default=trials, help=f"of {of_what}")
    if stated_trials is not None:
        parser.add_argument(
            "--stated-trials", type=positive, default=stated_trials, help="of everything else"
        )


class Run:
    """One measurement: reports its progress, and ends as a `Context`.

    The programs and the Python packages take part, and are in `versions`. A result may name the
    command line.
    """

    def __init__(self, programs: Sequence[str], packages: Sequence[str], command: str = "") -> None:
        self._command = command
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._commit = describe_commit(ROOT)
        self._machine = machine = describe_machine(programs, packages)
        self.versions = machine.versions
        if machine.load_average > machine.core_count / 2:
            self.say(
                f"this machine is busy (load average {machine.load_average:g} on "
                f"{machine.core_count} cores): the times will be longer, and further apart, than "
                "they should be"
            )

    def say(self, text: str) -> None:
        elapsed = time.monotonic() - self._clock
        print(f"{elapsed:5.0f} s  {text}", file=sys.stderr, flush=True)

    def end(self) -> Context:
        return Context(self._started, datetime.now(UTC), self._commit, self._machine, self._command)


@dataclass(frozen=True)
class Benchmark:
    """What is special about a benchmark.

    The package has the name with underscores. `measure` returns the run and what the document has
    beside its context. `quick` begins the help of `--quick`; without it there is no such option.
    """

    name: str
    about: str | None
    add_options: Callable[[argparse.ArgumentParser], None]
    # Any: JSON.
    measure: Callable[[argparse.Namespace], tuple[Run, dict[str, Any]]]
    page: Callable[[Document], str]
    quick: str = ""

    def parse(self, arguments: Sequence[str] | None = None) -> argparse.Namespace:
        """Returns the options and, as `command`, the command line itself.

        A quick run and a run of one part never write to benchmarks/results. An invalid command line
        ends the process with 1.
        """
        parser = ExitOneParser(
            prog=f"python -m benchmarks.{self.name.replace('-', '_')}",
            description=self.about,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        parser.add_argument("--seed", type=int, default=1, help="of the order of the trials")
        parser.add_argument(
            "--output",
            type=Path,
            default=RESULTS,
            metavar="DIR",
            help=f"folder for {self.name}.json and {self.name}.md",
        )
        parser.add_argument("--json", action="store_true", help="print the JSON, not the page")
        parser.set_defaults(quick=False, part=None)
        if self.quick:
            parser.add_argument(
                "--quick",
                action="store_true",
                help=f"{self.quick}, to see that it works: the result goes to "
                f"{_QUICK_RESULTS.relative_to(ROOT)}, never to benchmarks/results",
            )
        self.add_options(parser)
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = parser.parse_args(given)
        options.command = shlex.join([*parser.prog.split(), *given])
        if (options.quick or options.part) and options.output.resolve() == RESULTS:
            options.output = _QUICK_RESULTS
        return options

    def main(self, arguments: Sequence[str] | None = None) -> int:
        """Measures, writes the results and prints one of them; returns the exit code."""
        options = self.parse(arguments)
        if arguments is None:
            stop_on_signals()
        try:
            options.output.mkdir(parents=True, exist_ok=True)
            run, content = self.measure(options)
            # As readers of the file get it: without the types of this program.
            text = json.dumps({"benchmark": self.name, **run.end().as_json(), **content}, indent=2)
            page = self.page(json.loads(text))
            for ending, shown in (("json", f"{text}\n"), ("md", page)):
                path = options.output / f"{self.name}.{ending}"
                path.write_text(shown, "utf-8")
                print(f"wrote {path}", file=sys.stderr)
        except KeyboardInterrupt:
            print("Stopped.", file=sys.stderr)
            return 130
        except (BenchmarkError, LocalAwsError, OSError) as error:
            print(f"The benchmark ended early: {error}", file=sys.stderr)
            return 1
        print(f"{text}\n" if options.json else page, end="")
        return 0


def stop_on_signals() -> None:
    """Makes SIGTERM and SIGHUP stop a benchmark like Ctrl-C, so that it cleans up."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _stop)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
