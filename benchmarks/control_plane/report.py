"""Writes the result as JSON with every trial, and as a page of Markdown."""

from dataclasses import asdict
from typing import Any

from benchmarks.control_plane.design import COMMANDS, GOAL, Design
from benchmarks.control_plane.summary import CellSummary, Summary
from benchmarks.estimates import Estimate, Verdict
from benchmarks.report import Context, interval, page, picture, rounded, table


def as_json(design: Design, summary: Summary, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "control-plane",
        **context.as_json(),
        "design": asdict(design),
        "goal": {
            "command": GOAL.command.key,
            "config_count": GOAL.config_count,
            "baseline_count": GOAL.baseline_count,
            "highest_ratio": GOAL.highest_ratio,
            "verdict": summary.verdict,
        },
        "cells": [_cell_as_json(cell) for cell in summary.cells.values()],
    }


def _cell_as_json(summary: CellSummary) -> dict[str, Any]:
    command = summary.cell.command
    return {
        "command": command.key,
        "typed": command.shown,
        "form": command.form,
        "config_count": summary.cell.config_count,
        "median_seconds": round(summary.seconds.median, 3),
        "lowest_seconds": round(summary.seconds.low, 3),
        "highest_seconds": round(summary.seconds.high, 3),
        "median_processor_seconds": round(summary.median_processor_seconds, 3),
        "ratio": rounded(summary.ratio) if summary.ratio else None,
        "trials": [
            {
                "round": trial.round,
                **rounded(trial.result),
            }
            for trial in summary.trials
        ],
    }


def as_markdown(design: Design, summary: Summary, context: Context) -> str:
    """Returns the result as a page: the goal, the medians, the spread, the circumstances.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    sections = [
        "# What a command costs as a project grows",
        goal_line(design, summary),
        picture(
            "benchmark-commands",
            "Seconds of cdk deploy, diff and synth by the number of configs, for one model and "
            "for every model",
        ),
        "Median wall time in seconds, by the number of model configs in the project:",
        _medians(design, summary),
        f"Each number is the median of {design.trials} trials, or of {design.stated_trials} trials "
        "for `cdk` without `-c models=NAME`. [control-plane.json](control-plane.json) has every "
        "trial.",
        "## Circumstances",
        context.as_list(
            f"Order: seed {design.seed}.",
            "Everything runs against the embedded AWS ([what that means](../README.md)).",
        ),
    ]
    return page(sections)


def goal_line(design: Design, summary: Summary) -> str:
    """Returns the verdict in one line, with its numbers."""
    promise = (
        f"`{GOAL.command.shown}` among {GOAL.config_count} configs takes at most "
        f"{GOAL.highest_ratio:g} times as long as with {GOAL.baseline_count}"
    )
    if summary.verdict is Verdict.NOT_MEASURED:
        sizes = ", ".join(map(str, design.sizes))
        return f"**Goal {summary.verdict}** (sizes: {sizes}): {promise}."
    large = summary.of(GOAL.command, GOAL.config_count)
    small = summary.of(GOAL.command, GOAL.baseline_count)
    assert large.ratio is not None  # noqa: S101  # else it was not measured
    return (
        f"**Goal {summary.verdict}: {large.ratio.value:.2f} times** ({_interval(large.ratio)}; "
        f"{large.seconds.median:.1f} s against {small.seconds.median:.1f} s). "
        f"The goal: {promise}."
    )


def _medians(design: Design, summary: Summary) -> str:
    last, first = design.sizes[-1], design.sizes[0]
    header = ["command", *map(str, design.sizes), *([f"{last} : {first}"] if last > first else [])]
    rows = []
    for command in COMMANDS:
        row = [f"`{command.shown}`"]
        row += [f"{summary.of(command, size).seconds.median:.2f}" for size in design.sizes]
        ratio = summary.of(command, last).ratio
        if ratio is not None:
            value = f"{ratio.value:.2f}"
            row.append(value if ratio.low is None else f"{value} ({_interval(ratio)})")
        rows.append(row)
    return table(header, rows)


def _interval(ratio: Estimate) -> str:
    return interval(ratio) if ratio.low is None else f"95 %: {interval(ratio)}"
