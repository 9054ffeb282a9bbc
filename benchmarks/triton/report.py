"""Computes throughputs, ratios and verdicts from trials, and makes a page of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.estimates import goal, goals_section, latency_ratio, loads_as_json, throughput_ratio
from benchmarks.load import LoadResult
from benchmarks.report import (
    CLOSED_LOOP,
    Document,
    picture,
    result_page,
    significant,
    table,
)
from benchmarks.servers import driver_as_list
from benchmarks.trials import Trial
from benchmarks.triton.design import (
    COPIES,
    GOAL_CLIENTS,
    LEAST_THROUGHPUT_RATIOS,
    MAX_BATCH_SIZE,
    MOST_P99_RATIO,
    QUERIES,
    Cell,
    Design,
    Server,
    System,
    token_count,
)

LATENCIES = ("p50", "p99")
_Trials = Sequence[Trial[Cell, LoadResult]]


# Any: JSON.
def result(design: Design, trials: _Trials, answers: int) -> dict[str, Any]:
    generator = np.random.default_rng(design.seed)
    return {
        "design": asdict(design),
        "goals": list(_goals(trials, generator)),
        "tokens": list(map(token_count, QUERIES)),
        "answers_compared": answers,
        "cells": loads_as_json(
            design.cells,
            trials,
            "requests_per_second",
            LATENCIES,
            lambda cell: {
                "system": cell.server.system,
                "copies": cell.server.copies,
                "clients": cell.clients,
            },
        ),
    }


def _goals(trials: _Trials, generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    for copies, (baseline, least) in product(COPIES, LEAST_THROUGHPUT_RATIOS.items()):
        cell, other = (
            Cell(Server(each, copies), GOAL_CLIENTS) for each in (System.TRITON, baseline)
        )
        against = f"{copies} {'copy' if copies == 1 else 'copies'}, against {baseline.label}"
        throughput = throughput_ratio(trials, cell, other, generator)
        yield goal(f"requests/s of {against}", throughput, least=least)
        p99 = latency_ratio(trials, cell, other, "p99", generator)
        yield goal(f"p99 of {against}", p99, most=MOST_P99_RATIO)


def page(document: Document) -> str:
    tokens = document["tokens"]
    cells = [
        [
            str(cell["clients"]),
            System(cell["system"]).label,
            str(cell["copies"]),
            significant(cell["requests_per_second"]),
            significant(cell["p50_milliseconds"]),
            significant(cell["p99_milliseconds"]),
        ]
        for cell in document["cells"]
    ]
    return result_page(
        document,
        "T5 spelling correction on Triton, on the CPU",
        [
            "No GPU took part. The page compares ways to serve the same small T5 on the CPU of one "
            "machine.",
            *goals_section(document["goals"], "95 % interval"),
            f"Slipway on Triton, {GOAL_CLIENTS} clients: the ratios to the same server without "
            "batches, and to `generate` for each request on it.",
            *picture(
                document, "benchmark-triton", "Requests per second of each server by its clients"
            ),
            "## Every measurement",
            f"{len(tokens)} queries of {min(tokens)} to {max(tokens)} tokens, "
            f"{fmean(tokens):.0f} on average. One query a request.",
            table(["clients", "server", "copies", "requests/s", "p50 ms", "p99 ms"], cells),
            "[triton.json](triton.json) has the number of requests and every trial.",
            f"{document['answers_compared']:,} answers, including all timed answers, were compared "
            "with the text of transformers' `generate` for the same query. All are equal.",
            "## The load driver alone",
            "Against a server that does nothing, including this server's time:",
            driver_as_list(document["driver"], "p99"),
        ],
        "A copy of the model is a process that computes with one thread. The largest batch has "
        f"{MAX_BATCH_SIZE} texts.",
        "In Triton run the packages of tools/triton/requirements.txt, and PyTorch and "
        "transformers as listed.",
        f"Order: seed {document['design']['seed']}.",
        CLOSED_LOOP,
    )
