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


def ratio_of_medians(
    found: Sequence[float], baseline: Sequence[float], generator: np.random.Generator
) -> Estimate:
    """Returns the ratio of the medians of two series of trials.

    Args:
        found: trials whose median is the numerator.
        baseline: trials whose median is the denominator.
        generator: draws the bootstrap samples.

    Returns:
        The ratio, without an interval if a series has one trial.
    """
    value = median(found) / median(baseline)
    if min(len(found), len(baseline)) < 2:
        return Estimate(value, None, None)
    ratios = resampled_medians(found, generator) / resampled_medians(baseline, generator)
    return estimate(value, ratios)


def resampled_medians(values: Sequence[float], generator: np.random.Generator) -> FloatArray:
    """Returns the medians of bootstrap samples, each as large as `values`."""
    draws = generator.choice(np.asarray(values), size=(_RESAMPLES, len(values)))
    medians: FloatArray = np.median(draws, axis=1)
    return medians


def estimate(value: float, resampled: FloatArray) -> Estimate:
    """Returns a number with its bootstrap confidence interval."""
    low, high = np.percentile(resampled, _INTERVAL_PERCENT)
    return Estimate(value, float(low), float(high))
