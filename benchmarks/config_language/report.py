"""Computes medians, ranges and verdicts from trials, and makes a page of them."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.config_language.design import GOAL_CONFIGS, Measure, Task, measures
from benchmarks.config_language.session import Readings
from benchmarks.estimates import Spread, Verdict, spread
from benchmarks.report import Document, result_page, table
from benchmarks.trials import Trial


# Any: JSON.
def result(design: Mapping[str, Any], trials: Sequence[Trial[Task, Readings]]) -> dict[str, Any]:
    """Returns a row for each measure of a task that ran, and every trial."""
    ran = {trial.cell.key for trial in trials}  # an older result lacks newer tasks
    return {
        "measures": [
            _row(measure, trials)
            for measure in measures(design["config_count"], design["templates"])
            if measure.task in ran
        ],
        "trials": [
            {
                "round": trial.round,
                "task": trial.cell.key,
                **{name: _rounded(value) for name, value in trial.result.items()},
            }
            for trial in trials
        ],
    }


def _row(measure: Measure, trials: Sequence[Trial[Task, Readings]]) -> dict[str, Any]:
    found = spread(
        trial.result[measure.reading] for trial in trials if trial.cell.key == measure.task
    )
    return {
        "measure": measure.key,
        "title": measure.title,
        "goal": measure.goal,
        "verdict": _verdict(found, measure.goal),
        "median": _rounded(found.median),
        "lowest": _rounded(found.low),
        "highest": _rounded(found.high),
    }


def _verdict(found: Spread, goal: float | None) -> Verdict | None:
    if goal is None:
        return None
    if found.high < goal:
        return Verdict.MET
    return Verdict.MET_BY_MEDIAN if found.median < goal else Verdict.MISSED


def _rounded(value: float) -> float:
    # Tenths of a millisecond; bytes are whole.
    return round(value, 4)


def page(document: Document) -> str:
    """Returns the page: the verdict, and a row for each measure."""
    design = document["design"]
    units = {each.key: each.unit for each in measures(design["config_count"], design["templates"])}
    rows = []
    for row in document["measures"]:
        unit = units[row["measure"]]
        rows.append(
            [
                row["title"],
                "none" if row["goal"] is None else f"under {unit.goal(row['goal'])}",
                row["verdict"] or "",
                unit.shown(row["median"]),
                f"{unit.shown(row['lowest'])} to {unit.shown(row['highest'])}",
                str(design["trials"]),
            ]
        )
    return result_page(
        document,
        "What reading, checking and planning configs costs",
        [
            verdict_line(document),
            table(["", "goal", "", "median", "lowest to highest", "trials"], rows),
        ],
        f"Order and configs: seed {design['seed']}.",
    )


def verdict_line(document: Document) -> str:
    """Returns the goals that were met and missed, in one line."""
    judged = [row for row in document["measures"] if row["verdict"]]
    below = [row for row in judged if row["verdict"] != Verdict.MET]
    if below:
        named = "; ".join(f"{row['title']}: {row['verdict']}" for row in below)
        line = f"**{len(judged) - len(below)} of {len(judged)} goals met.** {named}."
    else:
        line = f"**All {len(judged)} goals met**, by every trial."
    if document["design"]["config_count"] != GOAL_CONFIGS:
        line += (
            f" The goals of `slipway validate` are for {GOAL_CONFIGS:,} configs, and were not "
            "measured."
        )
    return line
