"""Computes throughputs, ratios and verdicts from trials, and makes a page of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.estimates import at_least, at_most, latency_ratio, loads_as_json, throughput_ratio
from benchmarks.neuron.design import (
    FULL,
    GOAL_CLIENTS,
    MOST_P95_RATIO,
    SEQUENCE_LENGTHS,
    Cell,
    Design,
    System,
    least_throughput_ratio,
)
from benchmarks.neuron.session import ModelSession
from benchmarks.report import (
    CLOSED_LOOP,
    Document,
    capitalized,
    counted,
    estimated,
    goals_line,
    interval_note,
    picture,
    result_page,
    rounded,
    significant,
    table,
)
from benchmarks.servers import driver_as_list

LATENCIES = ("p50", "p95", "p99")
PADDING = (
    "Slipway's back end for the CPU pads a batch to its longest row. A device would pad it to its "
    "bucket, and fill the batch. The goals' table says how much of each ratio is padding saved."
)
"""The difference between the CPU and a device that matters most for the ratios."""


# Any: JSON.
def result(design: Design, sessions: Sequence[ModelSession]) -> dict[str, Any]:
    generator = np.random.default_rng(design.seed)
    return {
        "design": asdict(design),
        "goals": [
            _goal(cell, session, generator)
            for session in sessions
            for cell in design.goals(session.model)
        ],
        "models": [
            {
                "model": session.model.name,
                "answers_compared": session.answers,
                "tokens": session.tokens,
                "cells": loads_as_json(
                    design.cells(session.model),
                    session.trials,
                    # A request has one sentence.
                    "sentences_per_second",
                    LATENCIES,
                    _described,
                ),
            }
            for session in sessions
        ],
    }


def _goal(cell: Cell, session: ModelSession, generator: np.random.Generator) -> dict[str, Any]:
    trials, baseline = session.trials, cell.baseline
    throughput = throughput_ratio(trials, cell, baseline, generator)
    p95 = latency_ratio(trials, cell, baseline, "p95", generator)
    full, full_baseline = (replace(each, workload=FULL) for each in (cell, baseline))
    without_padding = throughput_ratio(trials, full, full_baseline, generator)
    least = least_throughput_ratio(cell.model, cell.server.batch_size)
    return {
        **_described(cell),
        "model": cell.model.name,
        "least_throughput_ratio": least,
        "throughput_ratio": rounded(throughput),
        "throughput_verdict": at_least(throughput, least),
        "most_p95_ratio": MOST_P95_RATIO,
        "p95_ratio": rounded(p95),
        "p95_verdict": at_most(p95, MOST_P95_RATIO),
        # With questions that no server pads.
        "throughput_ratio_without_padding": rounded(without_padding),
        "padding_factor": round(throughput.value / without_padding.value, 3),
    }


def _described(cell: Cell) -> dict[str, Any]:
    return {
        "workload": cell.workload.name,
        "system": cell.server.system,
        "workers": cell.server.workers,
        "batch_size": cell.server.batch_size,
        "concurrency": cell.concurrency,
    }


def page(document: Document) -> str:
    design, goals = document["design"], document["goals"]
    titles = {model["name"]: capitalized(model["title"]) for model in design["models"]}
    verdicts = [goal[key] for goal in goals for key in ("throughput_verdict", "p95_verdict")]
    plots = picture(
        document,
        "benchmark-neuron",
        "Sentences per second by the number of clients, of Slipway and of the naive server",
    )
    sections = [
        "No Neuron device took part. The page compares the servers around the model, on the CPU.",
        goals_line(verdicts),
        *picture(
            document,
            "benchmark-neuron-goals",
            "Ratios to the naive server with their intervals, beside the goals",
        ),
        _goals(goals, titles),
        f"{interval_note(design['trials'])} The intervals are in brackets.",
        "*Nothing to pad*: the same ratio with contexts that fill the naive server's length. "
        "*Padding saved*: the factor between the two ratios.",
        "## Sentences per second",
        *plots,
        "[neuron.json](neuron.json) has p99, the number of requests and every trial.",
    ]
    for model in document["models"]:
        for workload in design["workloads"]:
            sections += _workload(workload, model, titles[model["model"]])
        sections.append(
            f"{model['answers_compared']:,} answers, including all timed answers, were compared "
            "with the first server's answer to the same question. They have the same spans and "
            "scores."
        )
    return result_page(
        document,
        "The Neuron container's serving path on the CPU, against a naive TorchScript server",
        [
            *sections,
            "## The load driver alone",
            "Against a server that does nothing, including this server's time:",
            driver_as_list(document["driver"], "p95"),
        ],
        "Every server divides these cores among its workers.",
        PADDING,
        f"Order, questions and random weights: seed {design['seed']}.",
        CLOSED_LOOP,
    )


def _goals(goals: Sequence[Document], titles: Document) -> str:
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
    rows = [
        [
            f"{titles[goal['model']]}, batch {goal['batch_size']}, "
            f"{counted(goal['workers'], 'worker')}",
            f"{goal['least_throughput_ratio']:g}",
            estimated(goal["throughput_ratio"]),
            goal["throughput_verdict"],
            estimated(goal["p95_ratio"]),
            goal["p95_verdict"],
            estimated(goal["throughput_ratio_without_padding"]),
            f"{goal['padding_factor']:.2f} x",
        ]
        for goal in goals
    ]
    return table(header, rows)


def _workload(workload: Document, model: Document, title: str) -> Iterator[str]:
    tokens = model["tokens"][workload["name"]]
    shares = ", ".join(
        f"{sum(least < length <= most for length in tokens)} of up to {most}"
        for least, most in pairwise([0, *SEQUENCE_LENGTHS])
    )
    cells = [cell for cell in model["cells"] if cell["workload"] == workload["name"]]
    naive = {
        (cell["workers"], cell["concurrency"]): cell["sentences_per_second"]
        for cell in cells
        if cell["system"] == System.NAIVE
    }
    rows = []
    for cell in cells:
        label, ratio, rate = "one-by-one TorchScript", "", cell["sentences_per_second"]
        if cell["system"] == System.SLIPWAY:
            label = f"Slipway, batch {cell['batch_size']}"
            ratio = f"{rate / naive[cell['workers'], cell['concurrency']]:.2f} x"
        latencies = (significant(cell[f"{name}_milliseconds"]) for name in ("p50", "p95"))
        rows.append(
            [
                str(cell["concurrency"]),
                label,
                str(cell["workers"]),
                significant(rate),
                ratio,
                *latencies,
            ]
        )
    header = ["clients", "server", "workers", "sentences/s", "of the naive server's"]
    yield f"## {title}: {workload['title']}"
    yield (
        f"{len(tokens)} questions with their contexts, {min(tokens)} to {max(tokens)} tokens, "
        f"{fmean(tokens):.0f} on average: {shares}."
    )
    yield table([*header, "p50 ms", "p95 ms"], rows)
