"""Figures of the requests and of the trials, and verdicts on goals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean, median
from typing import Any

import numpy as np

from benchmarks.load import LoadResult
from benchmarks.report import (
    Document,
    goals_line,
    milliseconds,
    rounded,
    rounded_rate,
    significant,
    table,
)
from benchmarks.trials import Cell, Result, Trial, results_of
from slipway.benchmarking.estimates import Estimate, ratio_of_medians


class Verdict(StrEnum):
    MET = "met"  # by all of the interval
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
    p50: float
    p95: float
    p99: float

    def as_json(self, names: Sequence[str]) -> dict[str, float]:
        return {
            "requests": self.count,
            **{f"{name}_milliseconds": milliseconds(getattr(self, name)) for name in names},
        }


def latencies_of(seconds: Sequence[float]) -> Latencies:
    p50, p95, p99 = map(float, np.percentile(seconds, (50, 95, 99)))
    return Latencies(len(seconds), min(seconds), max(seconds), fmean(seconds), p50, p95, p99)


def pooled_latencies(loads: Iterable[LoadResult]) -> Latencies:
    return latencies_of([each for load in loads for each in load.all_latencies_seconds])


def loads_as_json(
    cells: Iterable[Cell],
    trials: Sequence[Trial[Cell, LoadResult]],
    rate: str,
    names: Sequence[str],
    describe: Callable[[Cell], Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Returns the figures of the cells that were measured, each with all of its trials.

    `rate` is the key of the throughput, `names` has the figures of the latencies, and `describe`
    returns what identifies a cell.
    """
    found = []
    for cell in cells:
        loads = results_of(trials, cell)
        if not loads:
            continue
        found.append(
            {
                **describe(cell),
                rate: rounded_rate(median(load.requests_per_second for load in loads)),
                **pooled_latencies(loads).as_json(names),
                "trials": [
                    {
                        "round": trial.round,
                        "order": order,
                        rate: rounded_rate(trial.result.requests_per_second),
                        **pooled_latencies([trial.result]).as_json(names),
                    }
                    for order, trial in enumerate(trials, start=1)
                    if trial.cell == cell
                ],
            }
        )
    return found


def throughput_ratio(
    trials: Sequence[Trial[Cell, LoadResult]],
    cell: Cell,
    baseline: Cell,
    generator: np.random.Generator,
) -> Estimate:
    found, other = (
        [load.requests_per_second for load in results_of(trials, each)] for each in (cell, baseline)
    )
    return ratio_of_medians(found, other, generator)


def latency_ratio(
    trials: Sequence[Trial[Cell, LoadResult]],
    cell: Cell,
    baseline: Cell,
    name: str,
    generator: np.random.Generator,
) -> Estimate:
    found, other = (
        [getattr(pooled_latencies([load]), name) for load in results_of(trials, each)]
        for each in (cell, baseline)
    )
    return ratio_of_medians(found, other, generator)


Readings = Mapping[str, float]  # of one trial by name, with the unit, as in `process_seconds`

# Of a second: tenths of a millisecond.
_DIGITS = 4


# Any: JSON, as below.
def cells_as_json(
    cells: Iterable[Cell],
    trials: Sequence[Trial[Cell, Result]],
    describe: Callable[[Cell], Mapping[str, Any]],
    read: Callable[[Result], Readings] = vars,
) -> list[dict[str, Any]]:
    """Returns the cells that were measured: what identifies them, their readings, every trial."""
    found = []
    for cell in cells:
        own = [(trial.round, read(trial.result)) for trial in trials if trial.cell == cell]
        if own:
            readings = {
                name: rounded(spread(each[name] for _, each in own), _DIGITS) for name in own[0][1]
            }
            each_trial = [
                {"round": number, **{name: round(value, _DIGITS) for name, value in each.items()}}
                for number, each in own
            ]
            found.append({**describe(cell), "readings": readings, "trials": each_trial})
    return found


def goal(
    title: str,
    found: Estimate | None,
    *,
    least: float | None = None,
    most: float | None = None,
    unit: str = "",
) -> dict[str, Any]:
    """Returns a goal with its verdict; without `least` or `most` it has none."""
    verdict: Verdict | None = None
    limit = "none"
    if least is not None:
        limit = f"at least {least:g} {unit}".rstrip()
        verdict = at_least(found, least) if found else Verdict.NOT_MEASURED
    elif most is not None:
        limit = f"at most {most:g} {unit}".rstrip()
        verdict = at_most(found, most) if found else Verdict.NOT_MEASURED
    return {
        "goal": title,
        "limit": limit,
        "unit": unit,
        "found": rounded(found, _DIGITS) if found else None,
        "verdict": verdict,
    }


def goals_section(goals: Sequence[Document], interval: str) -> list[str]:
    """Returns how many goals are met, and the table of them; `interval` says what theirs is."""
    rows = []
    for each in goals:
        found, unit = each["found"], each["unit"]
        shown = (
            [f"{significant(found['value'])} {unit}".rstrip(), "one trial"] if found else ["", ""]
        )
        if found and found["low"] is not None:
            shown[1] = f"{significant(found['low'])} to {significant(found['high'])}"
        rows.append([each["goal"], each["limit"], *shown, each["verdict"] or ""])
    verdicts = (each["verdict"] for each in goals if each["verdict"])
    return [goals_line(verdicts), table(["", "goal", "found", interval, "verdict"], rows)]
