"""When the requests of an open loop are sent: a Poisson process, a constant rate, or a trace."""

import csv
import itertools
import math
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, relative


def poisson_arrivals(rate: float, seconds: float, seed: int) -> Iterator[float]:
    """Yields the times of all requests in seconds, from 0; the same for the same seed."""
    generator = random.Random(seed)  # noqa: S311  # of an experiment, not of a secret
    at = generator.expovariate(rate)
    while at < seconds:
        yield at
        at += generator.expovariate(rate)


def constant_arrivals(rate: float, seconds: float) -> Iterator[float]:
    """Yields the times of requests that are equally far apart, from 0."""
    for number in itertools.count():
        if (at := number / rate) >= seconds:
            return
        yield at


def read_trace(path: Path, root: Path) -> Sequence[float]:
    """Returns the times of a trace, moved so that the first request is sent at 0.

    The first column of the CSV file has seconds in ascending order. A first line without a number
    is a heading. A gap of any length is kept: nothing is sent in it.

    Raises:
        UserError: every line that is wrong, or the file cannot be read.
    """
    shown = relative(path, root)
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _report([_problem(shown, 0, f"the trace cannot be read: {reason}")]) from None
    times: list[float] = []
    problems: list[Problem] = []
    for line, row in enumerate(rows, start=1):
        text = row[0].strip() if row else ""
        try:
            at = float(text)
        except ValueError:
            if line > 1:
                problems.append(_problem(shown, line, f"{text!r} is no time in seconds"))
            continue
        if not math.isfinite(at) or at < 0:
            problems.append(_problem(shown, line, f"the time {text} is not 0 or more"))
        elif times and at < times[-1]:
            problems.append(
                _problem(shown, line, f"the time {text} is before the one above it, {times[-1]:g}")
            )
        else:
            times.append(at)
    if not times and not problems:
        problems.append(_problem(shown, 0, "the trace has no request"))
    if problems:
        raise _report(problems)
    return [at - times[0] for at in times]


def _problem(shown: str, line: int, message: str) -> Problem:
    return Problem(
        Code.BENCH_INPUT,
        Kind.VALUE,
        message,
        "Give each line the seconds of one request in its first column, in ascending order.",
        location=Location(shown, line, 1 if line else 0),
    )


_MOST_PROBLEMS = 20


def _report(problems: Sequence[Problem]) -> UserError:
    return UserError(problems[:_MOST_PROBLEMS])
