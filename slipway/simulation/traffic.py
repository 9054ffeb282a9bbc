"""Requests over time: a trace from a CSV file, or a profile of a few numbers."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from slipway.codes.code import Code
from slipway.errors import Kind, Problem, UserError, did_you_mean
from slipway.request_times import finite, read_requests

SLOT_SECONDS: Final = 10
"""The shortest period of a metric that scaling follows."""

_LONGEST_SECONDS: Final = 31 * 86_400
_MOST_PER_SECOND: Final = 1e6


@dataclass(frozen=True)
class Traffic:
    """Requests of a model, in each slot of `SLOT_SECONDS`; the source is for people."""

    requests: tuple[float, ...]
    source: str

    @property
    def seconds(self) -> int:
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
    """Returns the traffic of `NAME:KEY=NUMBER,...`; `hours` is 24 where it is left out."""
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
        number = finite(value)
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
    """Returns the traffic of a CSV file, as `read_requests` takes it."""
    found = read_requests(
        lines, shown, Code.SIMULATED_TRAFFIC, longest_seconds=float(_LONGEST_SECONDS)
    )
    begin, period = found.seconds[0], found.period_seconds
    slots = math.ceil(max(found.length_seconds, SLOT_SECONDS) / SLOT_SECONDS)
    requests = [0.0] * slots
    for time, count in zip(found.seconds, found.counts, strict=True):
        at, end = time - begin, time - begin + period
        slot = min(int(at // SLOT_SECONDS), slots - 1)
        while period and slot < slots and slot * SLOT_SECONDS < end:
            overlap = min(end, (slot + 1) * SLOT_SECONDS) - max(at, slot * SLOT_SECONDS)
            requests[slot] += count * overlap / period
            slot += 1
        if not period:
            requests[slot] += count
    whole = f"{sum(found.counts):,.0f} requests of {shown} in {slots * SLOT_SECONDS:,} s"
    return Traffic(tuple(requests), whole)
