"""The shared parts of the benchmarks' command lines: options, progress, results and exit codes."""

import argparse
import json
import shlex
import signal
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from benchmarks.errors import BenchmarkError
from benchmarks.machine import describe_commit, describe_machine
from benchmarks.report import Context
from embedded_aws.errors import LocalAwsError

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
BUILD = ROOT / "build" / "benchmarks"
"""Folder for what a benchmark makes and keeps, such as models."""

Say = Callable[[str], None]


_QUICK_RESULTS = BUILD / "quick"


class ExitOneParser(argparse.ArgumentParser):
    """A parser that exits with 1, the code of every error that a user can fix, and not with 2."""

    def error(self, message: str) -> NoReturn:
        """Prints the error and exits."""
        self.print_usage(sys.stderr)
        self.exit(1, f"{self.prog}: {message}\n")


class Parser(ExitOneParser):
    """Parses a command line with the options of every benchmark.

    Args:
        program: the package, as `python -m` takes it.
        description: shown in the help.
        result: name of the two result files.
    """

    def __init__(self, program: str, description: str | None, result: str) -> None:
        super().__init__(
            prog=f"python -m {program}",
            description=description,
            formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        )
        self.add_argument("--seed", type=int, default=1, help="of the order of the trials")
        self.add_argument(
            "--output",
            type=Path,
            default=RESULTS,
            metavar="DIR",
            help=f"folder for {result}.json and {result}.md",
        )
        self.add_argument("--json", action="store_true", help="print the JSON, not the page")
        self.set_defaults(result=result, quick=False, part=None)

    def add_quick_option(self, text: str) -> None:
        """Adds `--quick`; `text` is the beginning of its help."""
        self.add_argument(
            "--quick",
            action="store_true",
            help=f"{text}, to see that it works: the result goes to "
            f"{_QUICK_RESULTS.relative_to(ROOT)}, never to benchmarks/results",
        )

    def parse(self, arguments: Sequence[str] | None) -> argparse.Namespace:
        """Returns the options and, as `command`, the command line itself.

        A quick run and a run of one part never write to benchmarks/results.

        Args:
            arguments: the command line; None takes the process's own. If it is invalid, the process
                ends with 1.
        """
        given = list(sys.argv[1:] if arguments is None else arguments)
        options = self.parse_args(given)
        options.command = shlex.join([*self.prog.split(), *given])
        if (options.quick or options.part) and options.output.resolve() == RESULTS:
            options.output = _QUICK_RESULTS
        return options


def positive(text: str) -> int:
    """Parses a whole number of at least 1; for `add_argument`."""
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def run(
    options: argparse.Namespace, measure: Callable[[argparse.Namespace], tuple[dict[str, Any], str]]
) -> int:
    """Measures, writes the results and prints one of them.

    Args:
        options: the result of `Parser.parse`.
        measure: returns the document and the page for the options.

    Returns:
        The exit code: 1 if the benchmark ended early, 130 if it was stopped.
    """
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        content, page = measure(options)
        document = json.dumps(content, indent=2) + "\n"
        for ending, text in (("json", document), ("md", page)):
            path = options.output / f"{options.result}.{ending}"
            path.write_text(text, "utf-8")
            print(f"wrote {path}", file=sys.stderr)
    except KeyboardInterrupt:
        print("Stopped.", file=sys.stderr)
        return 130
    except (BenchmarkError, LocalAwsError, OSError) as error:
        print(f"The benchmark ended early: {error}", file=sys.stderr)
        return 1
    print(document if options.json else page, end="")
    return 0


class Run:
    """One measurement: reports its progress, and ends as a `Context`.

    Args:
        programs: programs that take part, for the versions in the result.
        packages: Python distributions that take part.
        command: the command line, if the result names it.
    """

    def __init__(self, programs: Sequence[str], packages: Sequence[str], command: str = "") -> None:
        self._command = command
        self._started, self._clock = datetime.now(UTC), time.monotonic()
        self._commit = describe_commit(ROOT)
        self._machine = machine = describe_machine(programs, packages)
        if machine.load_average > machine.core_count / 2:
            self.say(
                f"this machine is busy (load average {machine.load_average:g} on "
                f"{machine.core_count} cores): the times will be longer, and further apart, than "
                "they should be"
            )

    def say(self, text: str) -> None:
        """Prints a line of progress."""
        elapsed = time.monotonic() - self._clock
        print(f"{elapsed:5.0f} s  {text}", file=sys.stderr, flush=True)

    def end(self) -> Context:
        """Ends the measurement and returns its circumstances."""
        return Context(self._started, datetime.now(UTC), self._commit, self._machine, self._command)


def stop_on_signals() -> None:
    """Makes SIGTERM and SIGHUP stop a benchmark like Ctrl-C, so that it cleans up."""
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, _stop)


def _stop(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt
