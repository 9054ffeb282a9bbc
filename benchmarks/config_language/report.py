"""Writes the result as JSON with every trial, and as a page of Markdown."""

from collections.abc import Sequence
from typing import Any

from benchmarks.config_language.design import GOAL_CONFIGS, Design, Readings, Task
from benchmarks.config_language.summary import Row
from benchmarks.estimates import Verdict
from benchmarks.report import Context, page, table
from benchmarks.trials import Trial


def as_json(
    design: Design, rows: Sequence[Row], trials: Sequence[Trial[Task, Readings]], context: Context
) -> dict[str, Any]:
    """Returns the whole result as one JSON document.

    Args:
        design: the plan of the run.
        rows: the summarized measures.
        trials: every fresh process.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "config-language",
        **context.as_json(),
        "design": {
            "config_count": design.config_count,
            "trials": design.trials,
            "seed": design.seed,
            "templates": [template for template, _ in design.planned],
        },
        "measures": [
            {
                "measure": row.measure.key,
                "title": row.measure.title,
                "goal": row.measure.goal,
                "verdict": row.verdict,
                "median": _rounded(row.spread.median),
                "lowest": _rounded(row.spread.low),
                "highest": _rounded(row.spread.high),
            }
            for row in rows
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


def as_markdown(design: Design, rows: Sequence[Row], context: Context) -> str:
    """Returns the result as a page: the verdict, the rows, the circumstances.

    Args:
        design: the plan of the run.
        rows: the summarized measures.
        context: time, place and commit of the run.
    """
    sections = [
        "# What reading, checking and planning configs costs",
        verdict_line(design, rows),
        _rows(rows),
        "## Circumstances",
        context.as_list(
            f"Order and configs: seed {design.seed}.", "[What is measured](../README.md)."
        ),
    ]
    return page(sections)


def verdict_line(design: Design, rows: Sequence[Row]) -> str:
    """Returns the goals that were met and missed, in one line."""
    judged = [row for row in rows if row.verdict is not None]
    below = [row for row in judged if row.verdict is not Verdict.MET]
    if below:
        named = "; ".join(f"{row.measure.title}: {row.verdict}" for row in below)
        line = f"**{len(judged) - len(below)} of {len(judged)} goals met.** {named}."
    else:
        line = f"**All {len(judged)} goals met**, by every trial."
    if design.config_count != GOAL_CONFIGS:
        line += (
            f" The goals of `slipway validate` are for {GOAL_CONFIGS:,} configs, and were not "
            "measured."
        )
    return line


def _rows(rows: Sequence[Row]) -> str:
    header = ["", "goal", "", "median", "lowest to highest", "trials"]
    return table(
        header,
        [
            [
                row.measure.title,
                "none" if row.measure.goal is None else f"under {_goal(row)}",
                row.verdict or "",
                row.measure.shown(row.spread.median),
                f"{row.measure.shown(row.spread.low)} to {row.measure.shown(row.spread.high)}",
                str(len(row.values)),
            ]
            for row in rows
        ],
    )


def _goal(row: Row) -> str:
    goal = row.measure.goal or 0
    return f"{goal * row.measure.per_unit:g} {row.measure.unit}"


def _rounded(value: float) -> float:
    # Tenths of a millisecond; bytes are whole.
    return round(value, 4)
