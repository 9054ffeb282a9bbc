"""The cost of a run, which is shown before it starts."""

from collections.abc import Sequence
from dataclasses import dataclass

from slipway.facts.prices import instance_price_per_hour

# Price of a customer managed key, prorated by the hour, until its deletion is scheduled.
# https://aws.amazon.com/kms/pricing/ (read 2026-11-23)
_KEY_USD_PER_MONTH = 1.0
# How long removal may take after the run's own time is over.
REMOVAL_MINUTES = 30
# The region whose prices the facts know best.
_KNOWN_REGION = "us-east-1"
_PRICE_LIST = "https://aws.amazon.com/sagemaker/ai/pricing/"


@dataclass(frozen=True)
class Cost:
    """The cost that is shown before anything is created.

    Args:
        instance_type: type of the instances, the dearest if there are several.
        region: AWS region.
        minutes: the longest that the instance may run: the run's limit and its removal.
        usd_per_hour: price of the instance; None if no source gives a price.
        source: source of the price, or where to look for it.
        at_once: the most instances at a time.
        key_usd_per_month: price of the key, until it is removed.
    """

    instance_type: str
    region: str
    minutes: int
    usd_per_hour: float | None
    source: str
    at_once: int
    key_usd_per_month: float = _KEY_USD_PER_MONTH

    def lines(self) -> list[str]:
        """Returns the cost as sentences."""
        what = f"{self.instance_type} in {self.region}"
        runs = "It runs" if self.at_once == 1 else f"Up to {self.at_once} run at once"
        time = f"{runs} for {self.minutes} minutes at most"
        first = f"The price of {what} is not known. {self.source} {time}."
        if self.usd_per_hour is not None:
            most = self.usd_per_hour * self.minutes / 60 * self.at_once
            first = f"One {what} costs {self.usd_per_hour:g} USD an hour ({self.source}). "
            first += f"{time}: {most:.2f} USD."
        return [
            first,
            f"A KMS key costs {self.key_usd_per_month:g} USD a month until you remove it. The "
            "command for that is printed at the end.",
            "Alarms, functions, logs and a few small files are billed by use: cents at most.",
        ]


def estimate(
    instance_types: Sequence[str], region: str, limit_minutes: int, *, at_once: int = 1
) -> Cost:
    """Returns the most that a run costs, given up and removed after so many minutes.

    Args:
        instance_types: the types that it uses.
        region: AWS region.
        limit_minutes: of the run, without its removal.
        at_once: the most instances at a time.
    """
    prices = {name: instance_price_per_hour(name, region) for name in instance_types}
    name, price = max(prices.items(), key=lambda each: each[1].usd if each[1] else float("inf"))
    usd, source = None, f"See {_PRICE_LIST}."
    if price:
        usd, source = price.usd, f"as of {price.as_of.isoformat()}"
    elif known := instance_price_per_hour(name, _KNOWN_REGION):
        source = f"In {_KNOWN_REGION} it is {known.usd:g} USD an hour. {source}"
    return Cost(name, region, limit_minutes + REMOVAL_MINUTES, usd, source, at_once)
