"""Writes the result as JSON with every trial, and as a page of Markdown."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from statistics import fmean
from typing import Any

from benchmarks.driver import CLOSED_LOOP, Driver, driver_as_json, driver_as_list
from benchmarks.estimates import Verdict
from benchmarks.neuron.design import (
    GOAL_CLIENTS,
    MOST_P95_RATIO,
    SEQUENCE_LENGTHS,
    Cell,
    Design,
    Server,
    System,
    Workload,
)
from benchmarks.neuron.summary import ModelSummary
from benchmarks.report import (
    MILLISECONDS,
    QUICK,
    Context,
    capitalized,
    counted,
    interval,
    interval_note,
    page,
    picture,
    rounded,
    significant,
    table,
)

_LATENCIES = ("p50", "p95", "p99")


PADDING = (
    "Slipway's back end for the CPU pads a batch to its longest row. A device would pad it to its "
    "bucket, and fill the batch. The goals' table says how much of each ratio is padding saved."
)
"""The difference between the CPU and a device that matters most for the ratios."""


def as_json(
    design: Design, models: Sequence[ModelSummary], driver: Driver, context: Context
) -> dict[str, Any]:
    """Returns the whole result as one JSON document; times are in milliseconds.

    Args:
        design: the plan of the run.
        models: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "neuron",
        **context.as_json(),
        "design": asdict(design),
        "goals": [
            {
                **_cell(found.goal.cell),
                "model": model.session.model.name,
                "least_throughput_ratio": found.least_throughput,
                "throughput_ratio": rounded(found.throughput),
                "throughput_verdict": found.throughput_verdict,
                "most_p95_ratio": MOST_P95_RATIO,
                "p95_ratio": rounded(found.p95),
                "p95_verdict": found.p95_verdict,
                "throughput_ratio_without_padding": rounded(found.without_padding),
                "padding_factor": round(found.padding_factor, 3),
            }
            for model in models
            for found in model.goals
        ],
        "driver": driver_as_json(driver, _LATENCIES),
        "models": [_model(model) for model in models],
    }


def _model(summary: ModelSummary) -> dict[str, Any]:
    session = summary.session
    return {
        "model": session.model.name,
        "answers_compared": session.answers,
        "tokens": {workload.name: list(tokens) for workload, tokens in session.tokens.items()},
        "cells": [
            # A request has one sentence.
            {**_cell(cell), **found.as_json(session.trials, "sentences_per_second", _LATENCIES)}
            for cell, found in summary.cells.items()
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {
        "workload": cell.workload.name,
        "system": cell.server.system,
        "workers": cell.server.workers,
        "batch_size": cell.server.batch_size,
        "concurrency": cell.concurrency,
    }


def as_markdown(
    design: Design, models: Sequence[ModelSummary], driver: Driver, context: Context
) -> str:
    """Returns the result as a page: the goals, a table for each model and workload, the rest.

    Args:
        design: the plan of the run.
        models: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    sections = [
        "# The Neuron container's serving path on the CPU, against a naive TorchScript server",
        *([QUICK] if design.is_quick else []),
        "No Neuron device took part. The page compares the servers around the model, on the CPU.",
        _goals(design, models),
    ]
    if not design.is_quick:  # plots are drawn from the committed results alone
        sections += [
            "## Sentences per second",
            picture(
                "benchmark-neuron",
                "Sentences per second by the number of clients, of Slipway and of the naive server",
            ),
            "[neuron.json](neuron.json) has p99, the number of requests and every trial.",
        ]
    for model in models:
        for workload in design.workloads:
            sections += _workload(workload, model)
        sections.append(
            f"{model.session.answers:,} answers, including all timed answers, were compared with "
            "the first server's answer to the same question. They have the same spans and scores."
        )
    sections += [
        "## The load driver alone",
        "Against a server that does nothing, including this server's time:",
        driver_as_list(driver, "p95"),
        "## Circumstances",
        context.as_list(
            "Every server divides these cores among its workers.",
            PADDING,
            f"Order, questions and random weights: seed {design.seed}.",
            CLOSED_LOOP,
            "[What is measured, and how to read it](../README.md).",
        ),
    ]
    return page(sections)


def _goals(design: Design, models: Sequence[ModelSummary]) -> str:
    """Returns how many goals are met, their plot, and a row for each server."""
    goals = [(model, found) for model in models for found in model.goals]
    counts = Counter(
        verdict for _, found in goals for verdict in (found.throughput_verdict, found.p95_verdict)
    )
    others = ", ".join(
        f"{count} {verdict}" for verdict, count in counts.items() if verdict is not Verdict.MET
    )
    line = f"**{counts[Verdict.MET]} of {counts.total()} goals met.**"
    rows = [
        [
            f"{capitalized(model.session.model.title)}, {_batch(found.goal.cell.server)}",
            f"{found.least_throughput:g}",
            f"{found.throughput.value:.2f} ({interval(found.throughput)})",
            str(found.throughput_verdict),
            f"{found.p95.value:.2f} ({interval(found.p95)})",
            str(found.p95_verdict),
            f"{found.without_padding.value:.2f} ({interval(found.without_padding)})",
            f"{found.padding_factor:.2f} x",
        ]
        for model, found in goals
    ]
    header = [
        f"{GOAL_CLIENTS} clients, against the naive server",
        "at least",
        "sentences/s",
        "",
        f"p95: at most {MOST_P95_RATIO:g}",
        "",
        "sentences/s, nothing to pad",
        "padding saved",
    ]
    plot = picture(
        "benchmark-neuron-goals",
        "Ratios to the naive server with their intervals, beside the goals",
    )
    return "\n\n".join(
        [
            f"{line} The others: {others}." if others else line,
            *([] if design.is_quick else [plot]),
            table(header, rows),
            f"{interval_note(design.trials)} The intervals are in brackets.",
            "*Nothing to pad*: the same ratio with contexts that fill the naive server's length. "
            "*Padding saved*: the factor between the two ratios.",
        ]
    )


def _batch(server: Server) -> str:
    return f"batch {server.batch_size}, {counted(server.workers, 'worker')}"


def _workload(workload: Workload, model: ModelSummary) -> list[str]:
    """Returns the heading, the lengths and the table of one workload."""
    tokens = model.session.tokens[workload]
    parts = [0, *SEQUENCE_LENGTHS]
    shares = ", ".join(
        f"{sum(least < length <= most for length in tokens)} of up to {most}"
        for least, most in pairwise(parts)
    )
    rows = [
        _row(Cell(model.session.model, workload, server, concurrency), model)
        for concurrency in workload.concurrencies
        for server in workload.servers
    ]
    header = [
        "clients",
        "server",
        "workers",
        "sentences/s",
        "of the naive server's",
        "p50 ms",
        "p95 ms",
    ]
    return [
        f"## {capitalized(model.session.model.title)}: {workload.title}",
        f"{len(tokens)} questions with their contexts, {min(tokens)} to {max(tokens)} tokens, "
        f"{fmean(tokens):.0f} on average: {shares}.",
        table(header, rows),
    ]


def _row(cell: Cell, model: ModelSummary) -> list[str]:
    found, server = model.cells[cell], cell.server
    ratio = ""
    if server.system is System.SLIPWAY:
        naive = Server(System.NAIVE, server.workers)
        baseline = model.cells[Cell(cell.model, cell.workload, naive, cell.concurrency)]
        ratio = f"{found.requests_per_second / baseline.requests_per_second:.2f} x"
    latencies = found.latencies
    return [
        str(cell.concurrency),
        server.label,
        str(server.workers),
        significant(found.requests_per_second),
        ratio,
        *(significant(seconds * MILLISECONDS) for seconds in (latencies.p50, latencies.p95)),
    ]
