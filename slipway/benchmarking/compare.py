"""What is better in one of two runs, with its interval."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

import numpy as np

from slipway.benchmarking.estimates import Estimate, ratio_of_medians
from slipway.benchmarking.figures import LEAST_TRIALS, MORE_IS_BETTER, TITLES
from slipway.benchmarking.results import Document
from slipway.codes.code import Code
from slipway.errors import UserError

COMPARED: Final = (
    "requests_per_second",
    "tokens_per_second",
    "average_milliseconds",
    "p50_milliseconds",
    "p99_milliseconds",
    "first_token_p50_milliseconds",
    "usd_per_million_requests",
    "usd_per_million_tokens",
)

_SEED = 1


@dataclass(frozen=True)
class Difference:
    """One figure of one cell in both runs.

    Args:
        levels: of the cell.
        figure: name of the figure.
        first: median of the first run.
        second: median of the second run.
        ratio: second over first, with its interval.
        verdict: what it shows, in words.
    """

    levels: dict[str, Any]
    figure: str
    first: float
    second: float
    ratio: Estimate
    verdict: str

    def as_json(self) -> dict[str, Any]:
        """Returns it for machines."""
        return {
            "levels": self.levels,
            "figure": self.figure,
            "first": self.first,
            "second": self.second,
            "ratio": self.ratio.value,
            "low": self.ratio.low,
            "high": self.ratio.high,
            "verdict": self.verdict,
        }


def compare(first: Document, second: Document) -> list[Difference]:
    """Compares every cell that both runs have.

    Raises:
        UserError: they have none in common.
    """
    generator = np.random.default_rng(_SEED)
    found = []
    known = [cell["levels"] for cell in second["cells"]]
    for cell in first["cells"]:
        levels = cell["levels"]
        if levels not in known:
            continue
        for name in COMPARED:
            values, others = (_values(each, levels, name) for each in (first, second))
            if not values or not others or not median(values):
                continue
            ratio = ratio_of_medians(others, values, generator)
            fewest = min(len(values), len(others))
            if fewest < LEAST_TRIALS:
                ratio = Estimate(ratio.value, None, None)
            found.append(
                Difference(
                    levels, name, median(values), median(others), ratio, _verdict(name, ratio)
                )
            )
    if not found:
        raise UserError.of(
            Code.BENCH_RESULT,
            "the two runs have no cell with a result in common",
            "Measure both with the same design.",
        )
    return found


def _values(document: Document, levels: dict[str, Any], name: str) -> Sequence[float]:
    """Returns a figure of every trial that counts; none if a trial lacks it."""
    trials = [
        each["figures"]
        for each in document["measured"]
        if each["levels"] == levels and not each["is_cut"] and each["client_limit"] is None
    ]
    values = [each[name] for each in trials if name in each]
    return values if len(values) == len(trials) else ()


def _verdict(name: str, ratio: Estimate) -> str:
    if ratio.low is None or ratio.high is None:
        return f"no verdict: fewer than {LEAST_TRIALS} trials"
    if ratio.low <= 1 <= ratio.high:
        return "no difference shown"
    is_better = (ratio.value > 1) == (name in MORE_IS_BETTER)
    return "second is better" if is_better else "first is better"


def change(ratio: Estimate) -> str:
    """Returns a ratio as a change in percent, with its interval."""
    text = f"{ratio.value - 1:+.1%}"
    if ratio.low is None or ratio.high is None:
        return text
    return f"{text} ({ratio.low - 1:+.1%} to {ratio.high - 1:+.1%})"


def differences_table(found: Sequence[Difference]) -> tuple[list[str], list[list[str]]]:
    """Returns heading and rows of a table."""
    heading = ["levels", "figure", "first", "second", "change (95 % interval)", "verdict"]
    rows = [
        [
            ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in each.levels.items()),
            TITLES[each.figure],
            f"{each.first:.4g}",
            f"{each.second:.4g}",
            change(each.ratio),
            each.verdict,
        ]
        for each in found
    ]
    return heading, rows


def doubts(first: Document, second: Document) -> list[str]:
    """Returns what else differs between the runs, so that a difference may come from it."""
    names = {
        "model": "model",
        "environment": "environment",
        "design": "design",
        "seed": "seed",
    }
    found = [
        f"{label}: {first[name]} and {second[name]}"
        for name, label in names.items()
        if first[name] != second[name]
    ]
    fleets = [
        sorted({each["instances"] for each in document["measured"]}) for document in (first, second)
    ]
    if fleets[0] != fleets[1]:
        found.append(f"instances: {', '.join(fleets[0])} and {', '.join(fleets[1])}")
    found += [
        f"the {which} run is partial: {document['stopped']}"
        for which, document in (("first", first), ("second", second))
        if document["stopped"]
    ]
    return found
