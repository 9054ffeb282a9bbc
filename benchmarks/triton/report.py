"""Writes the result as JSON with every trial, and as a page of Markdown."""

from collections import Counter
from dataclasses import asdict
from statistics import fmean
from typing import Any

from benchmarks.driver import CLOSED_LOOP, Driver, driver_as_json, driver_as_list
from benchmarks.estimates import Verdict
from benchmarks.report import (
    MILLISECONDS,
    QUICK,
    Context,
    capitalized,
    interval,
    page,
    picture,
    rounded,
    significant,
    table,
)
from benchmarks.triton.design import GOAL_CLIENTS, MAX_BATCH_SIZE, MOST_P99_RATIO, Design
from benchmarks.triton.queries import QUERIES, token_count
from benchmarks.triton.summary import Summary

_LATENCIES = ("p50", "p99")


def as_json(design: Design, summary: Summary, driver: Driver, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document; times are in milliseconds.

    Args:
        design: the plan of the run.
        summary: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    session = summary.session
    return {
        "benchmark": "triton",
        **context.as_json(),
        "design": asdict(design),
        "goals": [
            {
                "baseline": found.goal.baseline,
                "copies": found.copies,
                "clients": GOAL_CLIENTS,
                "least_throughput_ratio": found.goal.least_throughput_ratio,
                "throughput_ratio": rounded(found.throughput),
                "throughput_verdict": found.throughput_verdict,
                "most_p99_ratio": MOST_P99_RATIO,
                "p99_ratio": rounded(found.p99),
                "p99_verdict": found.p99_verdict,
            }
            for found in summary.goals
        ],
        "driver": driver_as_json(driver, _LATENCIES),
        "tokens": list(map(token_count, QUERIES)),
        "answers_compared": session.answers,
        "cells": [
            {
                "system": cell.server.system,
                "copies": cell.server.copies,
                "clients": cell.clients,
                **found.as_json(session.trials, "requests_per_second", _LATENCIES),
            }
            for cell, found in summary.cells.items()
        ],
    }


def as_markdown(design: Design, summary: Summary, driver: Driver, context: Context) -> str:
    """Returns the result as a page: the goals, the table, the circumstances.

    Args:
        design: the plan of the run.
        summary: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    tokens = list(map(token_count, QUERIES))
    rows = [
        [
            str(cell.clients),
            cell.server.system.label,
            str(cell.server.copies),
            significant(found.requests_per_second),
            significant(found.latencies.p50 * MILLISECONDS),
            significant(found.latencies.p99 * MILLISECONDS),
        ]
        for cell, found in summary.cells.items()
    ]
    sections = [
        "# T5 spelling correction on Triton, on the CPU",
        *([QUICK] if design.is_quick else []),
        "No GPU took part. The page compares ways to serve the same small T5 on the CPU of one "
        "machine.",
        _goals(summary),
    ]
    if not design.is_quick:  # plots are drawn from the committed results alone
        sections.append(
            picture("benchmark-triton", "Requests per second of each server by its clients")
        )
    sections += [
        "## Every measurement",
        f"{len(QUERIES)} queries of {min(tokens)} to {max(tokens)} tokens, {fmean(tokens):.0f} on "
        "average. One query a request.",
        table(["clients", "server", "copies", "requests/s", "p50 ms", "p99 ms"], rows),
        "[triton.json](triton.json) has the number of requests and every trial.",
        f"{summary.session.answers:,} answers, including all timed answers, were compared with "
        "the text of transformers' `generate` for the same query. All are equal.",
        "## The load driver alone",
        "Against a server that does nothing, including this server's time:",
        driver_as_list(driver, "p99"),
        "## Circumstances",
        context.as_list(
            f"A copy of the model is a process that computes with one thread. The largest batch "
            f"has {MAX_BATCH_SIZE} texts.",
            "In Triton run the packages of tools/triton/requirements.txt, and PyTorch and "
            "transformers as listed.",
            f"Order: seed {design.seed}.",
            CLOSED_LOOP,
            "[What is measured, and how to read it](../README.md).",
        ),
    ]
    return page(sections)


def _copies(count: int) -> str:
    return "1 copy" if count == 1 else f"{count} copies"


def _goals(summary: Summary) -> str:
    """Returns how many goals are met, and a row for each other system."""
    counts = Counter(
        verdict
        for found in summary.goals
        for verdict in (found.throughput_verdict, found.p99_verdict)
    )
    others = ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items() if verdict is not Verdict.MET
    )
    line = f"**{counts[Verdict.MET]} of {counts.total()} goals met.**"
    rows = [
        [
            f"{capitalized(found.goal.baseline.label)}, {_copies(found.copies)}",
            f"{found.throughput.value:.2f} ({interval(found.throughput)})",
            f"{found.goal.least_throughput_ratio:g}",
            str(found.throughput_verdict),
            f"{found.p99.value:.2f} ({interval(found.p99)})",
            str(found.p99_verdict),
        ]
        for found in summary.goals
    ]
    header = [
        f"Slipway on Triton, {GOAL_CLIENTS} clients, against",
        "ratio of requests/s",
        "at least",
        "",
        f"ratio of p99: at most {MOST_P99_RATIO:g}",
        "",
    ]
    return "\n\n".join(
        [
            f"{line} The others: {others}." if others else line,
            table(header, rows),
            "In brackets: the 95 % interval.",
        ]
    )
