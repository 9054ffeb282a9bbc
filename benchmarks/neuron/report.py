"""Writes the result as JSON with every trial, and as a page of Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

from benchmarks.estimates import Estimate, Verdict
from benchmarks.load import LoadResult
from benchmarks.neuron.design import (
    GOAL_CLIENTS,
    LEAST_THROUGHPUT_RATIO,
    MOST_P95_RATIO,
    SEQUENCE_LENGTHS,
    Cell,
    Design,
    Server,
    System,
    Workload,
)
from benchmarks.neuron.summary import Latencies, ModelSummary, latencies_of
from benchmarks.report import Context, picture, table

_MILLISECONDS = 1000
_QUICK = (
    "A quick run, with small models and a few requests: it shows that everything works, no more."
)


@dataclass(frozen=True)
class Setting:
    """The circumstances of the measurement.

    Args:
        command: the command that made the result.
        driver: measurements of the load driver alone, by its number of clients.
    """

    command: str
    driver: Mapping[int, LoadResult]


def as_json(
    design: Design, models: Sequence[ModelSummary], setting: Setting, context: Context
) -> dict[str, Any]:
    """Returns the whole result as one JSON document; times are in milliseconds.

    Args:
        design: the plan of the run.
        models: the computed results.
        setting: the command, and the load driver alone.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "neuron",
        **context.as_json(),
        "command": setting.command,
        "design": asdict(design),
        "goals": [
            {
                **_cell(found.goal.cell),
                "model": model.session.model.name,
                "least_throughput_ratio": LEAST_THROUGHPUT_RATIO,
                "throughput_ratio": _estimate(found.throughput),
                "throughput_verdict": found.throughput_verdict,
                "most_p95_ratio": MOST_P95_RATIO,
                "p95_ratio": _estimate(found.p95),
                "p95_verdict": found.p95_verdict,
            }
            for model in models
            for found in model.goals
        ],
        "driver": [
            {
                "clients": clients,
                **_latencies(latencies_of(load.all_latencies_seconds)),
                "requests_per_second": round(load.requests_per_second, 1),
                "processor_milliseconds_per_request": round(_processor_milliseconds(load), 3),
            }
            for clients, load in setting.driver.items()
        ],
        "models": [_model(model) for model in models],
    }


def _model(summary: ModelSummary) -> dict[str, Any]:
    session = summary.session
    return {
        "model": session.model.name,
        "answers_compared": session.answers,
        "tokens": {workload.name: list(tokens) for workload, tokens in session.tokens.items()},
        "cells": [
            {
                **_cell(cell),
                "sentences_per_second": round(found.sentences_per_second, 3),
                **_latencies(found.latencies),
                "trials": [
                    {
                        "round": trial.round,
                        "order": session.trials.index(trial) + 1,
                        "sentences_per_second": round(trial.load.requests_per_second, 3),
                        **_latencies(latencies_of(trial.load.all_latencies_seconds)),
                    }
                    for trial in found.trials
                ],
            }
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


def _latencies(found: Latencies) -> dict[str, float]:
    return {
        "requests": found.count,
        "p50_milliseconds": _milliseconds(found.p50),
        "p95_milliseconds": _milliseconds(found.p95),
        "p99_milliseconds": _milliseconds(found.p99),
    }


def _milliseconds(seconds: float) -> float:
    return round(seconds * _MILLISECONDS, 3)


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return {
        name: None if value is None else round(value, 3) for name, value in asdict(estimate).items()
    }


def as_markdown(
    design: Design, models: Sequence[ModelSummary], setting: Setting, context: Context
) -> str:
    """Returns the result as a page: the goals, a table for each model and workload, the rest.

    Args:
        design: the plan of the run.
        models: the computed results.
        setting: the command, and the load driver alone.
        context: time, place and commit of the run.
    """
    sections = [
        "# The Neuron container's serving path on the CPU, against a naive TorchScript server",
        *([_QUICK] if design.is_quick else []),
        "No Neuron device took part. The page compares the servers around the model, on the CPU.",
        _goals(models, is_quick=design.is_quick),
    ]
    if not design.is_quick:  # plots are drawn from the committed results alone
        sections += _plot()
    for model in models:
        for workload in design.workloads:
            sections += _workload(workload, model)
        sections.append(
            f"{model.session.answers:,} answers, including all timed answers, were compared with "
            "the first server's answer to the same question. They have the same spans and scores."
        )
    sections += ["## The load driver alone", _driver(setting)]
    sections += ["## Circumstances", _circumstances(design, setting, context)]
    return "\n\n".join(sections) + "\n"


def _goals(models: Sequence[ModelSummary], *, is_quick: bool) -> str:
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
            f"{_capitalized(model.session.model.title)}, {_batch(found.goal.cell.server)}",
            f"{found.throughput.value:.2f} ({_interval(found.throughput)})",
            str(found.throughput_verdict),
            f"{found.p95.value:.2f} ({_interval(found.p95)})",
            str(found.p95_verdict),
        ]
        for model, found in goals
    ]
    header = [
        f"{GOAL_CLIENTS} clients, against the naive server",
        f"sentences/s: at least {LEAST_THROUGHPUT_RATIO:g}",
        "",
        f"p95: at most {MOST_P95_RATIO:g}",
        "",
    ]
    plot = picture(
        "benchmark-neuron-goals",
        "Ratios to the naive server with their intervals, beside the goals",
    )
    return "\n\n".join(
        [
            f"{line} The others: {others}." if others else line,
            *([] if is_quick else [plot]),
            table(header, rows),
            "In brackets: the 95 % interval.",
        ]
    )


def _plot() -> list[str]:
    return [
        "## Sentences per second",
        picture(
            "benchmark-neuron",
            "Sentences per second by the number of clients, of Slipway and of the naive server",
        ),
        "[neuron.json](neuron.json) has p99, the number of requests and every trial.",
    ]


def _batch(server: Server) -> str:
    return f"batch {server.batch_size}, {_workers(server.workers)}"


def _workers(number: int) -> str:
    return "1 worker" if number == 1 else f"{number} workers"


def _interval(estimate: Estimate) -> str:
    if estimate.low is None or estimate.high is None:
        return "one trial"
    return f"{estimate.low:.2f} to {estimate.high:.2f}"


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
        f"## {_capitalized(model.session.model.title)}: {workload.title}",
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
        ratio = f"{found.sentences_per_second / baseline.sentences_per_second:.2f} x"
    latencies = found.latencies
    return [
        str(cell.concurrency),
        server.label,
        str(server.workers),
        _significant(found.sentences_per_second),
        ratio,
        *(_significant(seconds * _MILLISECONDS) for seconds in (latencies.p50, latencies.p95)),
    ]


def _significant(value: float) -> str:
    """Returns the number with three significant digits and no exponent."""
    digits = 0 if value >= 100 else 1 if value >= 10 else 2 if value >= 1 else 3
    return f"{value:,.{digits}f}"


def _driver(setting: Setting) -> str:
    driver = "\n".join(
        f"- {clients} client{'' if clients == 1 else 's'}: p50 "
        f"{found.p50 * _MILLISECONDS:.2f} ms, p95 {found.p95 * _MILLISECONDS:.2f} ms, "
        f"{_processor_milliseconds(load):.2f} ms of processor time a request"
        for clients, load in setting.driver.items()
        for found in [latencies_of(load.all_latencies_seconds)]
    )
    return f"Against a server that does nothing, including this server's time:\n\n{driver}"


def _processor_milliseconds(load: LoadResult) -> float:
    """Returns the processor time of the load driver per request, warm-up included."""
    sent = sum(count for _, _, count in load.answers)
    return load.driver_processor_seconds / sent * _MILLISECONDS


def _circumstances(design: Design, setting: Setting, context: Context) -> str:
    return context.as_list(
        "Every server divides these cores among its workers.",
        f"Order, questions and random weights: seed {design.seed}.",
        "[What is measured, and how to read it](../README.md).",
        command=setting.command,
    )


def _capitalized(text: str) -> str:
    return text if text[:1].isupper() else text[0].upper() + text[1:]
