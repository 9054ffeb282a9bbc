"""What is better in one of two runs, with its interval."""

from collections.abc import Sequence
from statistics import median
from typing import Any, Final

import numpy as np

from slipway.benchmarking.design import shown
from slipway.benchmarking.estimates import Estimate, ratio_of_medians
from slipway.benchmarking.figures import LEAST_TRIALS, TITLES
from slipway.benchmarking.report import Table
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


def compare(first: Document, second: Document) -> list[dict[str, Any]]:
    """Compares every cell that both runs have; a ratio is that of the second over the first.

    Raises `UserError` if they have none in common.
    """
    generator = np.random.default_rng(_SEED)
    found = []
    for cell in first["cells"]:
        for name in COMPARED:
            values, others = (_values(each, cell["levels"], name) for each in (first, second))
            if not values or not others or not median(values):
                continue
            ratio = ratio_of_medians(others, values, generator, LEAST_TRIALS)
            found.append(
                {
                    "levels": cell["levels"],
                    "figure": name,
                    "first": median(values),
                    "second": median(others),
                    "ratio": ratio.value,
                    "low": ratio.low,
                    "high": ratio.high,
                    "verdict": _verdict(name, ratio),
                }
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
    is_better = (ratio.value > 1) == name.endswith("_per_second")
    return "second is better" if is_better else "first is better"


def differences_table(found: Sequence[dict[str, Any]]) -> Table:
    """Returns the differences as a table, with each ratio as a change in percent."""
    rows = []
    for each in found:
        change = f"{each['ratio'] - 1:+.1%}"
        if each["low"] is not None:
            change += f" ({each['low'] - 1:+.1%} to {each['high'] - 1:+.1%})"
        medians = (f"{each[which]:.4g}" for which in ("first", "second"))
        levels, figure = shown(each["levels"]), TITLES[each["figure"]]
        rows.append([levels, figure, *medians, change, each["verdict"]])
    heading = ["levels", "figure", "first", "second", "change (95 % interval)", "verdict"]
    return Table(heading, rows)


def doubts(first: Document, second: Document) -> list[str]:
    """Returns what else differs between the runs, so that a difference may come from it."""
    found = [
        f"{name}: {first[name]} and {second[name]}"
        for name in ("model", "environment", "design", "seed")
        if first[name] != second[name]
    ]
    fleets = [
        ", ".join(sorted({each["instances"] for each in document["measured"]}))
        for document in (first, second)
    ]
    if fleets[0] != fleets[1]:
        found.append(f"instances: {' and '.join(fleets)}")
    found += [
        f"the {which} run is partial: {document['stopped']}"
        for which, document in (("first", first), ("second", second))
        if document["stopped"]
    ]
    return found
