"""The traffic that a fleet has to hold: a rate, or the times of recorded requests."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.request_times import read_requests

_WINDOW_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Traffic:
    """Requests a second of a model: those that a fleet has to hold, and those that are paid."""

    peak: float
    mean: float
    source: str


def read_traffic(lines: Iterable[str], shown: str) -> Traffic:
    """Returns the traffic of a trace: the busiest minute, and the mean."""
    found = read_requests(lines, shown, Code.FIT_TRAFFIC)
    times, length = found.seconds, found.length_seconds
    window = min(_WINDOW_SECONDS, length)
    peak, within, first = 0.0, 0.0, 0
    for at, count in zip(times, found.counts, strict=True):
        within += count
        while at - times[first] >= window:
            within -= found.counts[first]
            first += 1
        # Periods that do not fill a minute count by their own length.
        peak = max(peak, within / max(window, at - times[first] + found.period_seconds))
    whole = sum(found.counts)
    source = f"{whole:,.0f} requests of {shown} in {length:,.0f} s, at the busiest minute"
    return Traffic(max(peak, whole / length), whole / length, source)
