"""The traffic that a fleet has to hold: a rate, or the times of recorded requests."""

import csv
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError

_WINDOW_SECONDS: Final = 60.0
_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True)
class Traffic:
    """Requests of a model.

    Args:
        peak: requests a second that the fleet has to hold.
        mean: requests a second that are paid for.
        source: where both are from, for people.
    """

    peak: float
    mean: float
    source: str


def read_traffic(lines: Iterable[str], shown: str) -> Traffic:
    """Returns the traffic of a trace: the busiest minute, and the mean.

    The first column of the CSV file has the seconds of one request each, in ascending order. A
    first line without a number is a heading. Gaps are hours without requests.

    Args:
        lines: of the file.
        shown: its name in messages.

    Raises:
        UserError: every line that is wrong.
    """
    times: list[float] = []
    problems: list[Problem] = []
    for line, row in enumerate(csv.reader(lines), start=1):
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
    if not problems and (len(times) < 2 or times[-1] == times[0]):
        problems.append(_problem(shown, 0, "the file has no two requests at different times"))
    if problems:
        raise UserError(problems[:_MOST_PROBLEMS])
    return _of_times(times, shown)


def _of_times(times: Sequence[float], shown: str) -> Traffic:
    length = times[-1] - times[0]
    window = min(_WINDOW_SECONDS, length)
    busiest = first = 0
    for last, at in enumerate(times):
        while at - times[first] >= window:
            first += 1
        busiest = max(busiest, last - first + 1)
    mean = len(times) / length
    source = f"{len(times):,} requests of {shown} in {length:,.0f} s, at the busiest minute"
    return Traffic(max(busiest / window, mean), mean, source)


def _problem(shown: str, line: int, message: str) -> Problem:
    return Problem(
        Code.FIT_TRAFFIC,
        Kind.VALUE,
        message,
        "Give each line the seconds of one request in its first column, in ascending order.",
        location=Location(shown, line, 1 if line else 0),
    )
