"""Numbers with their intervals, and verdicts on goals."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median

import numpy as np
import numpy.typing as npt

_RESAMPLES = 10_000
_INTERVAL_PERCENT = (2.5, 97.5)

FloatArray = npt.NDArray[np.float64]


class Verdict(StrEnum):
    """Whether a goal was met, as far as the trials show."""

    MET = "met"
    """By all of the interval."""
    MET_BY_MEDIANS = "met by the medians only"
    MET_BY_MEDIAN = "met by the median only"
    MISSED = "not met"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Spread:
    """The median of some trials, and their range."""

    median: float
    low: float
    high: float


def spread(values: Iterable[float]) -> Spread:
    """Returns the spread of some trials."""
    found = list(values)
    return Spread(median(found), min(found), max(found))


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval (percentile bootstrap); no interval from one trial."""

    value: float
    low: float | None
    high: float | None

    def at_least(self, goal: float) -> Verdict:
        """Returns the verdict on a goal that the number should reach."""
        if self.value < goal:
            return Verdict.MISSED
        # Without an interval, the influence of chance is unknown.
        is_sure = self.low is not None and self.low >= goal
        return Verdict.MET if is_sure else Verdict.MET_BY_MEDIANS

    def at_most(self, goal: float) -> Verdict:
        """Returns the verdict on a goal that the number should not exceed."""
        if self.value > goal:
            return Verdict.MISSED
        is_sure = self.high is not None and self.high <= goal
        return Verdict.MET if is_sure else Verdict.MET_BY_MEDIANS


def estimate_of_median(values: Sequence[float], generator: np.random.Generator) -> Estimate:
    """Returns the median of some trials; the generator draws the bootstrap samples."""
    if len(values) < 2:
        return Estimate(median(values), None, None)
    return _estimate(median(values), _resampled_medians(values, generator))


def ratio_of_medians(
    found: Sequence[float], baseline: Sequence[float], generator: np.random.Generator
) -> Estimate:
    """Returns the median of `found` as a multiple of the median of `baseline`."""
    value = median(found) / median(baseline)
    if min(len(found), len(baseline)) < 2:
        return Estimate(value, None, None)
    resampled = _resampled_medians(found, generator) / _resampled_medians(baseline, generator)
    return _estimate(value, resampled)


def _resampled_medians(values: Sequence[float], generator: np.random.Generator) -> FloatArray:
    draws = generator.choice(np.asarray(values), size=(_RESAMPLES, len(values)))
    medians: FloatArray = np.median(draws, axis=1)
    return medians


def _estimate(value: float, resampled: FloatArray) -> Estimate:
    low, high = np.percentile(resampled, _INTERVAL_PERCENT)
    return Estimate(value, float(low), float(high))
