"""Figures of the requests and of the trials, and verdicts on goals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median, pstdev

import numpy as np

from slipway.benchmarking.estimates import Estimate

_MILLISECONDS = 1000.0


class Verdict(StrEnum):
    MET = "met"
    """By all of the interval."""
    MET_BY_MEDIANS = "met by the medians only"
    MISSED = "not met"
    NOT_MEASURED = "not measured"


def at_least(found: Estimate, goal: float) -> Verdict:
    if found.value < goal:
        return Verdict.MISSED
    # Without an interval, the influence of chance is unknown.
    is_sure = found.low is not None and found.low >= goal
    return Verdict.MET if is_sure else Verdict.MET_BY_MEDIANS


def at_most(found: Estimate, goal: float) -> Verdict:
    if found.value > goal:
        return Verdict.MISSED
    is_sure = found.high is not None and found.high <= goal
    return Verdict.MET if is_sure else Verdict.MET_BY_MEDIANS


@dataclass(frozen=True)
class Spread:
    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(median(found), min(found), max(found))


@dataclass(frozen=True)
class Latencies:
    """The latencies of some requests, in seconds."""

    count: int
    shortest: float
    longest: float
    average: float
    deviation: float
    p50: float
    p90: float
    p95: float
    p99: float

    def as_json(self, names: Sequence[str]) -> dict[str, float]:
        return {
            "requests": self.count,
            **{
                f"{name}_milliseconds": round(getattr(self, name) * _MILLISECONDS, 3)
                for name in names
            },
        }


def latencies_of(seconds: Sequence[float]) -> Latencies:
    p50, p90, p95, p99 = map(float, np.percentile(seconds, (50, 90, 95, 99)))
    shortest, longest = min(seconds), max(seconds)
    return Latencies(
        len(seconds), shortest, longest, fmean(seconds), pstdev(seconds), p50, p90, p95, p99
    )
