"""The numbers of a load: throughput, latencies, tokens and costs, of one trial and of several."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev, stdev
from typing import Final

import numpy as np

from slipway.benchmarking.answers import Observed
from slipway.benchmarking.estimates import Estimate, estimate_of_median

LEAST_TRIALS: Final = 5
"""Fewer trials give no interval."""

Figures = Mapping[str, float]
"""By name, which ends in the unit; a figure that was not measured is missing."""

TITLES: Final[Mapping[str, str]] = {
    "requests_per_second": "requests/s",
    "items_per_second": "inputs/s",
    "tokens_per_second": "tokens/s",
    "average_milliseconds": "average, ms",
    "minimum_milliseconds": "min, ms",
    "maximum_milliseconds": "max, ms",
    "deviation_milliseconds": "SD, ms",
    "p50_milliseconds": "p50, ms",
    "p90_milliseconds": "p90, ms",
    "p95_milliseconds": "p95, ms",
    "p99_milliseconds": "p99, ms",
    "first_token_p50_milliseconds": "first token p50, ms",
    "first_token_p99_milliseconds": "first token p99, ms",
    "between_tokens_p50_milliseconds": "between tokens p50, ms",
    "between_tokens_p99_milliseconds": "between tokens p99, ms",
    "late_p99_milliseconds": "sent late p99, ms",
    "failed_percent": "failed, %",
    "usd_per_million_requests": "USD per million requests",
    "usd_per_million_items": "USD per million inputs",
    "usd_per_million_tokens": "USD per million tokens",
}
"""Each figure in the order of a table."""

MORE_IS_BETTER: Final = frozenset({"requests_per_second", "items_per_second", "tokens_per_second"})

_MILLISECONDS = 1000.0
_SECONDS_PER_HOUR = 3600.0
_MILLION = 1e6


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
        """Returns the number of requests, and the named figures in milliseconds."""
        return {
            "requests": self.count,
            **{
                f"{name}_milliseconds": round(getattr(self, name) * _MILLISECONDS, 3)
                for name in names
            },
        }


def latencies_of(seconds: Sequence[float]) -> Latencies:
    """Returns the figures of some requests."""
    p50, p90, p95, p99 = map(float, np.percentile(seconds, (50, 90, 95, 99)))
    shortest, longest = min(seconds), max(seconds)
    return Latencies(
        len(seconds), shortest, longest, fmean(seconds), pstdev(seconds), p50, p90, p95, p99
    )


def trial_figures(
    observed: Sequence[Observed], seconds: float, batch: int, usd_per_hour: float | None
) -> Figures:
    """Returns the figures of one trial.

    Args:
        observed: the requests that count, failed ones too.
        seconds: that its throughput is of: the mean of the clients' spans, or the whole time.
        batch: inputs of each request.
        usd_per_hour: of the instances that answered; None where a price is unknown.
    """
    answered = [each for each in observed if each.failure is None]
    found: dict[str, float] = {}
    if observed:
        found["failed_percent"] = 100 * (len(observed) - len(answered)) / len(observed)
        late = latencies_of([each.late_seconds for each in observed]).p99
        found["late_p99_milliseconds"] = late * _MILLISECONDS
    if not answered or seconds <= 0:
        return found
    found["requests_per_second"] = len(answered) / seconds
    found["items_per_second"] = batch * len(answered) / seconds
    latencies = latencies_of([each.latency_seconds for each in answered])
    for name, value in (
        ("average", latencies.average),
        ("minimum", latencies.shortest),
        ("maximum", latencies.longest),
        ("deviation", latencies.deviation),
        *((name, getattr(latencies, name)) for name in ("p50", "p90", "p95", "p99")),
    ):
        found[f"{name}_milliseconds"] = value * _MILLISECONDS
    tokens = [each.tokens for each in answered if each.tokens is not None]
    if len(tokens) == len(answered):
        found["tokens_per_second"] = sum(tokens) / seconds
    for name, values in (
        ("first_token", [each.first_seconds for each in answered]),
        ("between_tokens", [each.between_seconds for each in answered]),
    ):
        known = [value for value in values if value is not None]
        if known:
            of_parts = latencies_of(known)
            found[f"{name}_p50_milliseconds"] = of_parts.p50 * _MILLISECONDS
            found[f"{name}_p99_milliseconds"] = of_parts.p99 * _MILLISECONDS
    if usd_per_hour is not None:
        found.update(costs(found, usd_per_hour))
    return found


def costs(figures: Figures, usd_per_hour: float) -> Figures:
    """Returns what a million requests, inputs and tokens cost at the measured throughput."""
    return {
        f"usd_per_million_{what}": usd_per_hour / (figures[rate] * _SECONDS_PER_HOUR) * _MILLION
        for what in ("requests", "items", "tokens")
        if figures.get(rate := f"{what}_per_second")
    }


def failures_of(observed: Sequence[Observed]) -> dict[str, int]:
    """Returns how often each failure came, the most frequent first."""
    found = Counter(each.kind for each in observed if each.failure is not None)
    return dict(found.most_common())


@dataclass(frozen=True)
class Measured:
    """One figure of a cell over its trials.

    Args:
        estimate: the median, with its interval from `LEAST_TRIALS` trials on.
        deviation: standard deviation of the trials; None for one trial.
    """

    estimate: Estimate
    deviation: float | None


def over_trials(trials: Sequence[Figures], generator: np.random.Generator) -> dict[str, Measured]:
    """Returns each figure that every trial has, in the order of `TITLES`."""
    found = {}
    for name in TITLES:
        values = [trial[name] for trial in trials if name in trial]
        if not values or len(values) < len(trials):
            continue
        if len(values) < LEAST_TRIALS:
            estimate = Estimate(median(values), None, None)
        else:
            estimate = estimate_of_median(values, generator)
        found[name] = Measured(estimate, stdev(values) if len(values) > 1 else None)
    return found
