"""Reads recorded requests from a CSV file."""

import csv
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError

REMEDY: Final = "Write the seconds of one request on each line, in ascending order."
_PERIODS_REMEDY: Final = (
    "Write `SECONDS` of each request, or `SECONDS,REQUESTS` of periods of one length, in "
    "ascending order, and 0 for a quiet period."
)
_MOST_PROBLEMS: Final = 20


@dataclass(frozen=True)
class RecordedRequests:
    """Requests at ascending seconds: each time is of one request, or begins a period.

    `period_seconds` is 0 where every time is of one request.
    """

    seconds: Sequence[float]
    counts: Sequence[float]
    period_seconds: float

    @property
    def length_seconds(self) -> float:
        """Returns the time from the first request to the last one, or to the last period's end."""
        return self.seconds[-1] - self.seconds[0] + self.period_seconds


def read_requests(
    lines: Iterable[str],
    shown: str,
    code: Code,
    *,
    has_periods: bool = True,
    longest_seconds: float = math.inf,
) -> RecordedRequests:
    """Returns the requests of a CSV file.

    Lines of one column are the seconds of one request each, and time between them is quiet. Lines
    of two columns are the begin of a period and its requests: all periods have the same length. A
    first line without a number is a heading, and empty lines are skipped. Without `has_periods` the
    file has none, and one request is enough. `longest_seconds` limits the time from the first to
    the last. Raises `UserError` with every wrong line.
    """
    times: list[float] = []
    counts: list[float] = []
    places: list[int] = []
    columns = 0 if has_periods else 1
    problems: list[Problem] = []

    def wrong(line: int, message: str) -> None:
        place = Location(shown, line, 1 if line else 0)
        remedy = _PERIODS_REMEDY if has_periods else REMEDY
        problems.append(Problem(code, Kind.VALUE, message, remedy, location=place))

    rows = csv.reader(lines)
    try:
        for line, row in enumerate(rows, start=1):
            cells = [cell.strip() for cell in row]
            if not any(cells) or (line == 1 and finite(cells[0]) is None):
                continue
            columns = columns or len(cells)
            found = _wrong_cells(cells, columns) or _wrong_order(cells, times[-1:])
            for message in found:
                wrong(line, message)
            if not found:
                times.append(float(cells[0]))
                counts.append(float(cells[1]) if columns == 2 else 1.0)
                places.append(line)
    except csv.Error as error:
        wrong(rows.line_num, f"the line cannot be read: {error}")
    period = 0.0
    if not problems and has_periods and (not times or times[0] == times[-1]):
        wrong(0, "the file has no two different times")
    elif not problems and not times:
        wrong(0, "the file has no request")
    elif not problems:
        if times[-1] - times[0] > longest_seconds:
            wrong(places[-1], f"the times are more than {longest_seconds / 86_400:g} days apart")
        if columns == 2:
            period = min(later - at for at, later in itertools.pairwise(times))
        for (at, later), line in zip(itertools.pairwise(times), places[1:], strict=True):
            if period and later - at > period * 1.01:
                wrong(line, f"a gap: nothing from {at + period:g} to {later:g}")
    if problems:
        raise UserError(problems[:_MOST_PROBLEMS])
    return RecordedRequests(times, counts, period)


def _wrong_cells(cells: Sequence[str], columns: int) -> list[str]:
    if len(cells) != columns or columns > 2:
        return [f"the line has {len(cells)} columns, and not {min(columns, 2)}"]
    found = []
    for cell, what in zip(cells, ("time", "number of requests"), strict=False):
        number = finite(cell)
        if number is None:
            found.append(f"{cell!r} is no {what}")
        elif number < 0:
            found.append(f"the {what} {cell} is negative")
    return found


def _wrong_order(cells: Sequence[str], before: Sequence[float]) -> list[str]:
    at = float(cells[0])
    if before and at < before[0]:
        return [f"the time {cells[0]} is before the one above it, {before[0]:g}"]
    if before and at == before[0] and len(cells) == 2:
        return [f"the time {cells[0]} comes twice"]
    return []


def finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
