"""Computes throughputs, ratios and verdicts from trials, and makes a page of them."""

from dataclasses import asdict
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.driver import driver_as_list
from benchmarks.estimates import at_least, at_most
from benchmarks.report import (
    CLOSED_LOOP,
    Document,
    capitalized,
    estimated,
    goals_line,
    picture,
    result_page,
    rounded,
    significant,
    table,
)
from benchmarks.summary import cells_as_json, latency_ratio, throughput_ratio
from benchmarks.triton.design import (
    COPIES,
    GOAL_CLIENTS,
    LEAST_THROUGHPUT_RATIOS,
    MAX_BATCH_SIZE,
    MOST_P99_RATIO,
    Cell,
    Design,
    Server,
    System,
)
from benchmarks.triton.queries import QUERIES, token_count
from benchmarks.triton.session import Session

LATENCIES = ("p50", "p99")


# Any: JSON.
def result(design: Design, session: Session) -> dict[str, Any]:
    """Returns the goals and the cells; the same trials and seed give the same numbers."""
    generator = np.random.default_rng(design.seed)
    return {
        "design": asdict(design),
        "goals": [
            _goal(copies, baseline, least, session, generator)
            for copies, (baseline, least) in product(COPIES, LEAST_THROUGHPUT_RATIOS.items())
        ],
        "tokens": list(map(token_count, QUERIES)),
        "answers_compared": session.answers,
        "cells": cells_as_json(
            design.cells,
            session.trials,
            "requests_per_second",
            LATENCIES,
            lambda cell: {
                "system": cell.server.system,
                "copies": cell.server.copies,
                "clients": cell.clients,
            },
        ),
    }


def _goal(
    copies: int, baseline: System, least: float, session: Session, generator: np.random.Generator
) -> dict[str, Any]:
    cell, other = (Cell(Server(each, copies), GOAL_CLIENTS) for each in (System.TRITON, baseline))
    throughput = throughput_ratio(session.trials, cell, other, generator)
    p99 = latency_ratio(session.trials, cell, other, "p99", generator)
    return {
        "baseline": baseline,
        "copies": copies,
        "clients": GOAL_CLIENTS,
        "least_throughput_ratio": least,
        "throughput_ratio": rounded(throughput),
        "throughput_verdict": at_least(throughput, least),
        "most_p99_ratio": MOST_P99_RATIO,
        "p99_ratio": rounded(p99),
        "p99_verdict": at_most(p99, MOST_P99_RATIO),
    }


def page(document: Document) -> str:
    """Returns the page: the goals, every measurement, the load driver."""
    tokens, goals = document["tokens"], document["goals"]
    header = [
        f"Slipway on Triton, {GOAL_CLIENTS} clients, against",
        "ratio of requests/s",
        "at least",
        "",
        f"ratio of p99: at most {MOST_P99_RATIO:g}",
        "",
    ]
    rows = [
        [
            f"{capitalized(System(goal['baseline']).label)}, "
            f"{goal['copies']} {'copy' if goal['copies'] == 1 else 'copies'}",
            estimated(goal["throughput_ratio"]),
            f"{goal['least_throughput_ratio']:g}",
            goal["throughput_verdict"],
            estimated(goal["p99_ratio"]),
            goal["p99_verdict"],
        ]
        for goal in goals
    ]
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
            goals_line(
                goal[key] for goal in goals for key in ("throughput_verdict", "p99_verdict")
            ),
            table(header, rows),
            "In brackets: the 95 % interval.",
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
