"""Writes the result as JSON with every trial, and as a page of Markdown."""

from collections import Counter
from typing import Any

from benchmarks.estimates import Verdict
from benchmarks.publish.design import GIGABYTE, MEGABYTE, MOST_SECONDS, Cell, Design, Work
from benchmarks.publish.summary import Goal, Summary
from benchmarks.report import Context, interval, page, rounded, significant, table

_QUICK = "A quick run, with a few small files: it shows that everything works, no more."


def as_json(design: Design, summary: Summary, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "publish",
        **context.as_json(),
        "design": {
            "trials": design.trials,
            "seed": design.seed,
            "is_quick": design.is_quick,
            "sizes": {
                work: {"file_count": size.file_count, "file_bytes": size.file_bytes}
                for work, size in design.sizes.items()
            },
        },
        "goals": [
            {
                "work": goal.work,
                "baseline": goal.baseline,
                "least_ratio" if goal.baseline else "most_seconds": goal.limit,
                "found": rounded(goal.found),
                "verdict": goal.verdict,
            }
            for goal in summary.goals
        ],
        "cells": [
            {
                "work": cell.work,
                "way": cell.way,
                "seconds": rounded(found.seconds),
                "peak_bytes": found.peak_bytes,
                "trials": [
                    {
                        "round": trial.round,
                        "seconds": round(trial.result.seconds, 3),
                        "peak_bytes": trial.result.peak_bytes,
                    }
                    for trial in summary.session.trials
                    if trial.cell == cell
                ],
            }
            for cell, found in summary.cells.items()
        ],
    }


def as_markdown(design: Design, summary: Summary, context: Context) -> str:
    """Returns the result as a page: the goals, the table, the circumstances.

    Args:
        design: the plan of the run.
        summary: the computed results.
        context: time, place and commit of the run.
    """
    rows = [
        [
            _named(design, cell.work),
            f"`{cell.way}`",
            significant(found.seconds.median),
            f"{significant(found.seconds.low)} to {significant(found.seconds.high)}",
            _rate(design, cell, found.seconds.median),
            significant(found.peak_bytes / MEGABYTE),
        ]
        for cell, found in summary.cells.items()
    ]
    return page(
        [
            "# Publishing files",
            *([_QUICK] if design.is_quick else []),
            "`slipway publish` beside `s5cmd cp` and `aws s3 sync`, to an S3 server on the same "
            "machine. No network and no AWS took part.",
            _goals(design, summary.goals),
            "## Every measurement",
            table(["files", "program", "seconds", "range", "MB/s", "peak MB"], rows),
            "[publish.json](publish.json) has every trial.",
            "## Circumstances",
            context.as_list(
                f"Order: seed {design.seed}. {design.trials} trials of each row, alternating.",
                "The server takes its share of the processor from the program that is measured.",
                "The peak is of the program and its children together, without the server.",
                "The large prefix has sparse files and made-up hashes. No byte of them is read.",
                "[What is measured, and how to read it](../README.md).",
            ),
        ]
    )


def _named(design: Design, work: Work) -> str:
    size = design.sizes[work]
    return f"{work}: {size.file_count:,} of {_size(size.file_bytes)}"


def _size(size_bytes: int) -> str:
    if size_bytes < MEGABYTE:
        return f"{size_bytes / 1000:g} kB"
    return f"{size_bytes / MEGABYTE:g} MB"


def _rate(design: Design, cell: Cell, seconds: float) -> str:
    if not cell.work.is_upload:
        return ""
    return significant(design.sizes[cell.work].total_bytes / MEGABYTE / seconds)


def _goals(design: Design, goals: tuple[Goal, ...]) -> str:
    """Returns how many goals are met, and a row for each goal."""
    counts = Counter(goal.verdict for goal in goals)
    others = ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items() if verdict is not Verdict.MET
    )
    line = f"**{counts[Verdict.MET]} of {len(goals)} goals met.**"
    rows = [
        [
            _named(design, goal.work),
            f"rate / `{goal.baseline}`" if goal.baseline else "seconds",
            f"{goal.found.value:.2f} ({interval(goal.found)})",
            f"at least {goal.limit:g}" if goal.baseline else f"at most {goal.limit:g}",
            str(goal.verdict),
        ]
        for goal in goals
    ]
    total = design.sizes[Work.PREFIX].total_bytes / GIGABYTE
    return page(
        [
            f"{line} Others: {others}." if others else line,
            table(["files", "measured", "found", "goal", "verdict"], rows),
            f"A publish that sends nothing may take {MOST_SECONDS:g} s, the start of the command "
            f"included. The large prefix has {total:g} GB, all of which has arrived without the "
            "manifest. Publishing lists it, finds nothing to send and writes manifest and lock.",
        ]
    ).rstrip()
