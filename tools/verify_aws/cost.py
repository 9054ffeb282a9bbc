"""The cost of a run, which is shown before it starts."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from slipway.facts.prices import instance_price_per_hour

# Price of a customer managed key, prorated by the hour, until its deletion is scheduled.
# https://aws.amazon.com/kms/pricing/ (read 2026-11-23)
_KEY_USD_PER_MONTH = 1.0
# How long removal may take after the run's own time is over.
REMOVAL_MINUTES = 30
# The region whose prices the facts know best.
_KNOWN_REGION = "us-east-1"
_PRICE_LIST = "https://aws.amazon.com/sagemaker/ai/pricing/"


class Cost(NamedTuple):
    """The cost that is shown before anything is created, of the dearest type of the instances.

    Args:
        usd_per_hour: price of the instance; None if no source gives a price.
        minutes: the longest that the instance may run: the run's limit and its removal.
        lines: the cost as sentences.
    """

    instance_type: str
    usd_per_hour: float | None
    minutes: int
    lines: Sequence[str]


def estimate(
    instance_types: Sequence[str], region: str, limit_minutes: int, *, at_once: int = 1
) -> Cost:
    """Returns the most that a run costs, given up and removed after so many minutes."""
    prices = {name: instance_price_per_hour(name, region) for name in instance_types}
    name, price = max(prices.items(), key=lambda each: each[1].usd if each[1] else math.inf)
    minutes = limit_minutes + REMOVAL_MINUTES
    runs = "It runs" if at_once == 1 else f"Up to {at_once} run at once"
    time = f"{runs} for {minutes} minutes at most"
    if price:
        first = (
            f"One {name} in {region} costs {price.usd:g} USD an hour (as of "
            f"{price.as_of.isoformat()}). {time}: {price.usd * minutes / 60 * at_once:.2f} USD."
        )
    else:
        known = instance_price_per_hour(name, _KNOWN_REGION)
        there = f"In {_KNOWN_REGION} it is {known.usd:g} USD an hour. " if known else ""
        first = f"The price of {name} in {region} is not known. {there}See {_PRICE_LIST}. {time}."
    key = (
        f"A KMS key costs {_KEY_USD_PER_MONTH:g} USD a month until you remove it. The command for "
        "that is printed at the end."
    )
    rest = "Alarms, functions, logs and a few small files are billed by use: cents at most."
    return Cost(name, price.usd if price else None, minutes, [first, key, rest])
