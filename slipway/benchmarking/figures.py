"""The numbers of a load: throughput, latencies, tokens and costs, of one trial and of several."""

from collections.abc import Mapping, Sequence
from statistics import stdev
from typing import Final

import numpy as np

from slipway.benchmarking.answers import Observed
from slipway.benchmarking.estimates import estimate_of_median, rounded

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

_SECONDS_PER_HOUR = 3600.0
_MILLION = 1e6


def trial_figures(
    observed: Sequence[Observed], seconds: float, batch: int, usd_per_hour: float | None
) -> Figures:
    """Returns the figures of one trial, of its requests that count, failed ones too.

    The throughput is that of `seconds`: the mean of the clients' spans, or the whole time.
    """
    found: dict[str, float] = {}

    def add_percentiles(name: str, values: Sequence[float | None], *percents: int) -> None:
        known = [value for value in values if value is not None]
        for percent in percents if known else ():
            found[f"{name}p{percent}_milliseconds"] = float(np.percentile(known, percent))

    answered = [each for each in observed if each.failure is None]
    if observed:
        found["failed_percent"] = 100 * (len(observed) - len(answered)) / len(observed)
        add_percentiles("late_", [each.late_milliseconds for each in observed], 99)
    if answered and seconds > 0:
        counts = {"requests": len(answered), "items": batch * len(answered)}
        tokens = [each.tokens for each in answered if each.tokens is not None]
        if len(tokens) == len(answered):
            counts["tokens"] = sum(tokens)
        for what, count in counts.items():
            found[f"{what}_per_second"] = count / seconds
            if usd_per_hour is not None and count:
                usd_per_second = usd_per_hour / _SECONDS_PER_HOUR
                found[f"usd_per_million_{what}"] = usd_per_second * seconds / count * _MILLION
        latencies = np.array([each.latency_milliseconds for each in answered])
        found["average_milliseconds"] = float(latencies.mean())
        found["minimum_milliseconds"] = float(latencies.min())
        found["maximum_milliseconds"] = float(latencies.max())
        found["deviation_milliseconds"] = float(latencies.std())
        add_percentiles("", latencies.tolist(), 50, 90, 95, 99)
        first = [each.first_token_milliseconds for each in answered]
        add_percentiles("first_token_", first, 50, 99)
        between = [each.between_tokens_milliseconds for each in answered]
        add_percentiles("between_tokens_", between, 50, 99)
    return {name: rounded(value) for name, value in found.items()}


def over_trials(
    trials: Sequence[Figures], generator: np.random.Generator
) -> dict[str, dict[str, float | None]]:
    """Returns each figure that every trial has, in the order of `TITLES`.

    A figure is its median (`value`) with its interval (`low`, `high`), and the standard deviation
    of the trials. None stands for what so few trials do not tell.
    """
    found = {}
    for name in TITLES:
        values = [trial[name] for trial in trials if name in trial]
        if not values or len(values) < len(trials):
            continue
        median = estimate_of_median(values, generator, LEAST_TRIALS)
        deviation = stdev(values) if len(values) > 1 else None
        of_median = {"value": median.value, "low": median.low, "high": median.high}
        found[name] = {
            key: None if value is None else rounded(value)
            for key, value in {**of_median, "deviation": deviation}.items()
        }
    return found
