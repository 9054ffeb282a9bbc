"""The traffic that a fleet has to hold: a rate, or the times of recorded requests."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Location, Problem, UserError
from slipway.request_times import REMEDY, read_request_times

_WINDOW_SECONDS: Final = 60.0


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

    Args:
        lines: of the CSV file, as `read_request_times` takes them.
        shown: its name in messages.

    Raises:
        UserError: every line that is wrong, or there are too few.
    """
    times = read_request_times(lines, shown, Code.FIT_TRAFFIC)
    if len(times) < 2 or times[-1] == times[0]:
        message = "the file has no two requests at different times"
        place = Location(shown, 0, 0)
        problem = Problem(Code.FIT_TRAFFIC, Kind.VALUE, message, REMEDY, location=place)
        raise UserError([problem])
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
