"""Numbers with their intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

_RESAMPLES = 10_000
_INTERVAL_PERCENT = (2.5, 97.5)

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A number and its 95 % interval (percentile bootstrap); None where trials are too few."""

    value: float
    low: float | None = None
    high: float | None = None


def estimate_of_median(
    values: Sequence[float], generator: np.random.Generator, least_trials: int = 2
) -> Estimate:
    """Returns the median of some trials; fewer than `least_trials` give no interval."""
    if len(values) < least_trials:
        return Estimate(median(values))
    return _estimate(median(values), _resampled_medians(values, generator))


def ratio_of_medians(
    found: Sequence[float],
    baseline: Sequence[float],
    generator: np.random.Generator,
    least_trials: int = 2,
) -> Estimate:
    """Returns the median of `found` as a multiple of the median of `baseline`."""
    value = median(found) / median(baseline)
    if min(len(found), len(baseline)) < least_trials:
        return Estimate(value)
    resampled = _resampled_medians(found, generator) / _resampled_medians(baseline, generator)
    return _estimate(value, resampled)


def _resampled_medians(values: Sequence[float], generator: np.random.Generator) -> FloatArray:
    draws = generator.choice(np.asarray(values), size=(_RESAMPLES, len(values)))
    medians: FloatArray = np.median(draws, axis=1)
    return medians


def _estimate(value: float, resampled: FloatArray) -> Estimate:
    low, high = np.percentile(resampled, _INTERVAL_PERCENT)
    return Estimate(value, float(low), float(high))


def rounded(value: float) -> float:
    """Returns a number with six significant digits, as the files of a run have it."""
    return float(f"{value:.6g}")
