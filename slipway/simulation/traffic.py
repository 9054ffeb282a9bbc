"""Requests over time: a trace from a CSV file, or a profile of a few numbers."""

import csv
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError, did_you_mean

SLOT_SECONDS: Final = 10
"""The shortest period of a metric that scaling follows."""

_LONGEST_SECONDS: Final = 31 * 86_400
_MOST_PER_SECOND: Final = 1e6


@dataclass(frozen=True)
class Traffic:
    """Requests of a model.

    Args:
        requests: in each slot of `SLOT_SECONDS`.
        source: where they are from, for people.
    """

    requests: tuple[float, ...]
    source: str

    @property
    def seconds(self) -> int:
        """Returns the length."""
        return SLOT_SECONDS * len(self.requests)


@dataclass(frozen=True)
class _Profile:
    example: Mapping[str, float]
    rate: Callable[[float, Mapping[str, float]], float]


def _daily(at: float, given: Mapping[str, float]) -> float:
    middle, swing = (given["low"] + given["high"]) / 2, (given["high"] - given["low"]) / 2
    return middle - swing * math.cos(2 * math.pi * at / 86_400)


def _burst(at: float, given: Mapping[str, float]) -> float:
    is_peak = at % given["every"] >= given["every"] - given["length"]
    return given["peak" if is_peak else "base"]


PROFILES: Final[Mapping[str, _Profile]] = {
    "constant": _Profile({"rate": 10, "hours": 24}, lambda _, given: given["rate"]),
    "daily": _Profile({"low": 10, "high": 100, "hours": 24}, _daily),
    "burst": _Profile({"base": 10, "peak": 100, "every": 3600, "length": 300, "hours": 24}, _burst),
}
"""By name: an example of each number, and the requests a second at a time in seconds."""


def profile(text: str) -> Traffic:
    """Returns the traffic of `NAME:KEY=NUMBER,...`; `hours` is 24 where it is left out.

    Raises:
        UserError: everything that is wrong with it.
    """
    name, _, rest = text.partition(":")
    if name not in PROFILES:
        hint = did_you_mean(name, PROFILES) or f"Profiles are {', '.join(PROFILES)}."
        raise UserError.of(
            Code.SIMULATED_TRAFFIC, f"{text!r} is neither a file nor a profile", hint
        )
    known = PROFILES[name]
    example = ",".join(f"{key}={value:g}" for key, value in known.example.items())
    given, wrong = {"hours": 24.0}, []
    for part in filter(None, rest.split(",")):
        key, _, value = part.partition("=")
        number = _number(value)
        if key not in known.example:
            wrong.append(f"{name} has no {key!r}")
        elif number is None or not 0 <= number <= _MOST_PER_SECOND:
            wrong.append(f"{key} is {value!r}, and not a number from 0 to {_MOST_PER_SECOND:,.0f}")
        else:
            given[key] = number
    wrong += [f"{name} needs {key!r}" for key in known.example if f"{key}=" not in f"hours={rest}"]
    if not wrong and not 0 < given["hours"] * 3600 <= _LONGEST_SECONDS:
        wrong.append("hours are not above 0, and 744 at most")
    if not wrong and name == "burst" and not 0 < given["length"] <= given["every"]:
        wrong.append("a burst's length is not above 0, or longer than `every`")
    if wrong:
        remedy = f"Write for example `{name}:{example}`."
        raise UserError(Problem(Code.SIMULATED_TRAFFIC, Kind.VALUE, each, remedy) for each in wrong)
    slots = math.ceil(given["hours"] * 3600 / SLOT_SECONDS)
    middles = ((slot + 0.5) * SLOT_SECONDS for slot in range(slots))
    return Traffic(tuple(known.rate(at, given) * SLOT_SECONDS for at in middles), text)


def read_trace(lines: Iterable[str], shown: str) -> Traffic:
    """Returns the traffic of a CSV file.

    Lines of one column are the seconds of one request each, and time between them is quiet. Lines
    of two columns are the begin of a period and its requests: all periods have the same length. A
    first line without a number is a heading.

    Args:
        lines: of the file.
        shown: its name in messages.

    Raises:
        UserError: every line that is wrong.
    """
    times: list[float] = []
    counts: list[float] = []
    places: list[int] = []
    problems: list[Problem] = []
    columns = 0
    for line, row in enumerate(csv.reader(lines), start=1):
        cells = [cell.strip() for cell in row]
        if not any(cells) or (not columns and line == 1 and _number(cells[0]) is None):
            continue
        columns = columns or len(cells)
        wrong = list(_wrong_cells(cells, columns))
        at = _number(cells[0])
        if at is not None and times and at < times[-1]:
            wrong.append(f"the time {cells[0]} is before the one above it, {times[-1]:g}")
        elif at is not None and times and at == times[-1] and columns == 2:
            wrong.append(f"the time {cells[0]} comes twice")
        problems += [_problem(shown, line, message) for message in wrong]
        if not wrong and at is not None:
            times.append(at)
            counts.append(float(cells[1]) if columns == 2 else 1.0)
            places.append(line)
    if not problems:
        problems += _of_whole(times, places, columns, shown)
    if problems:
        raise UserError(problems)
    return _in_slots(times, counts, columns, shown)


def _wrong_cells(cells: list[str], columns: int) -> Iterator[str]:
    if len(cells) != columns or columns > 2:
        yield f"the line has {len(cells)} columns, and not {min(columns, 2)}"
        return
    for cell, what in zip(cells, ("time", "number of requests"), strict=False):
        number = _number(cell)
        if number is None:
            yield f"{cell!r} is no {what}"
        elif number < 0:
            yield f"the {what} {cell} is negative"


def _of_whole(times: list[float], places: list[int], columns: int, shown: str) -> Iterator[Problem]:
    if len(times) < 2 or times[0] == times[-1]:
        yield _problem(shown, 0, "the file has no two different times")
        return
    if times[-1] - times[0] > _LONGEST_SECONDS:
        yield _problem(shown, places[-1], "the times are more than 31 days apart")
    if columns == 2:
        period = min(later - at for at, later in itertools.pairwise(times))
        for (at, later), line in zip(itertools.pairwise(times), places[1:], strict=True):
            if later - at > period * 1.01:
                yield _problem(shown, line, f"a gap: nothing from {at + period:g} to {later:g}")


def _in_slots(times: list[float], counts: list[float], columns: int, shown: str) -> Traffic:
    begin = times[0]
    period = min(later - at for at, later in itertools.pairwise(times)) if columns == 2 else 0.0
    slots = math.ceil(max(times[-1] - begin + period, SLOT_SECONDS) / SLOT_SECONDS)
    requests = [0.0] * slots
    for time, count in zip(times, counts, strict=True):
        at, end = time - begin, time - begin + period
        slot = min(int(at // SLOT_SECONDS), slots - 1)
        while period and slot < slots and slot * SLOT_SECONDS < end:
            overlap = min(end, (slot + 1) * SLOT_SECONDS) - max(at, slot * SLOT_SECONDS)
            requests[slot] += count * overlap / period
            slot += 1
        if not period:
            requests[slot] += count
    whole = f"{sum(counts):,.0f} requests of {shown} in {slots * SLOT_SECONDS:,} s"
    return Traffic(tuple(requests), whole)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _problem(shown: str, line: int, message: str) -> Problem:
    return Problem(
        Code.SIMULATED_TRAFFIC,
        Kind.VALUE,
        message,
        "Write `SECONDS` of each request, or `SECONDS,REQUESTS` of periods of one length, in "
        "ascending order, and 0 for a quiet period.",
        location=Location(shown, line, 1 if line else 0),
    )
