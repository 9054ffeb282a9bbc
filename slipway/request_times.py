"""Reads the times of recorded requests from a CSV file."""

import csv
import math
from collections.abc import Iterable
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError

REMEDY: Final = "Give each line the seconds of one request in its first column, in ascending order."
_MOST_PROBLEMS: Final = 20


def read_request_times(lines: Iterable[str], shown: str, code: Code) -> list[float]:
    """Returns the seconds of each request, in ascending order.

    The first column has them. A first line without a number is a heading. A gap of any length is
    time without requests.

    Args:
        lines: of the file.
        shown: its name in messages.
        code: of the problems.

    Raises:
        UserError: every line that is wrong.
    """
    times: list[float] = []
    problems: list[Problem] = []

    def wrong(line: int, message: str) -> None:
        place = Location(shown, line, 1)
        problems.append(Problem(code, Kind.VALUE, message, REMEDY, location=place))

    for line, row in enumerate(csv.reader(lines), start=1):
        text = row[0].strip() if row else ""
        try:
            at = float(text)
        except ValueError:
            if line > 1:
                wrong(line, f"{text!r} is no time in seconds")
            continue
        if not math.isfinite(at) or at < 0:
            wrong(line, f"the time {text} is not 0 or more")
        elif times and at < times[-1]:
            wrong(line, f"the time {text} is before the one above it, {times[-1]:g}")
        else:
            times.append(at)
    if problems:
        raise UserError(problems[:_MOST_PROBLEMS])
    return times
