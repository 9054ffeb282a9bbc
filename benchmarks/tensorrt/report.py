"""Computes throughputs, ratios and verdicts from trials, and makes a page of them."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.estimates import goal, goals_section, loads_as_json, throughput_ratio
from benchmarks.overhead import Costs, overhead_as_json, overhead_as_list, overhead_goals
from benchmarks.report import (
    CLOSED_LOOP,
    Document,
    capitalized,
    counted,
    interval_note,
    items,
    picture,
    result_page,
    rounded_rate,
    significant,
    table,
)
from benchmarks.servers import driver_as_list
from benchmarks.tensorrt.design import GOALS, Cell, Design, Goal, System
from benchmarks.tensorrt.session import CONCURRENCY, ModelSession

LATENCIES = ("shortest", "longest", "average", "p50", "p99")
_AGAINST = {
    System.STATIC: "static batching",
    System.BARE: "the bare loop",
    System.CACHED: "the cached layout",
    System.UNCACHED: "the published layout",
}


# Any: JSON, as below.
def result(design: Design, sessions: Sequence[ModelSession], costs: Costs) -> dict[str, Any]:
    generator = np.random.default_rng(design.seed)
    return {
        "design": asdict(design),
        "goals": [
            *(_goal(each, sessions[0], generator) for each in GOALS),
            *overhead_goals(costs, generator),
        ],
        "overhead": overhead_as_json(costs),
        "models": [_model(design, session) for session in sessions],
    }


def _goal(wanted: Goal, session: ModelSession, generator: np.random.Generator) -> dict[str, Any]:
    measured = {trial.cell.about: trial.cell for trial in session.trials}
    ratio = None
    if {wanted.fast, wanted.baseline} <= measured.keys():
        cell, baseline = measured[wanted.fast], measured[wanted.baseline]
        ratio = throughput_ratio(session.trials, cell, baseline, generator)
    title = f"{capitalized(session.model.title)}: {wanted.title}"
    return goal(title, ratio, least=wanted.least)


def _model(design: Design, session: ModelSession) -> dict[str, Any]:
    calibration = session.calibration
    return {
        "model": session.model.name,
        "agreement": asdict(session.agreement),
        "calibration": {
            "alone": asdict(calibration.alone),
            "together": asdict(calibration.together),
            "candidates": [
                {
                    **asdict(each.layout),
                    "requests_per_second": [
                        {"clients": clients, "requests_per_second": rounded_rate(rate)}
                        for clients, rate in ((1, each.alone), (CONCURRENCY, each.together))
                    ],
                }
                for each in calibration.measured
            ],
        },
        "left_out": [
            {**_described(cell), "expected_seconds": round(seconds, 1)}
            for cell, seconds in session.left_out.items()
        ],
        "cells": loads_as_json(
            design.cells(session.model),
            session.trials,
            "requests_per_second",
            LATENCIES,
            _described,
        ),
    }


def _described(cell: Cell) -> dict[str, Any]:
    return {"workload": cell.workload.name, "system": cell.system, "concurrency": cell.concurrency}


def page(document: Document) -> str:
    design = document["design"]
    titles = {model["name"]: capitalized(model["title"]) for model in design["models"]}
    starts = counted(len(document["overhead"]["lives"]) // 2, "start")
    sections = [
        *goals_section(document["goals"], "95 % interval"),
        f"{interval_note(design['trials'])} The stub has {starts}, each of which counts as a "
        "trial.",
    ]
    for model in document["models"]:
        title = titles[model["model"]]
        sections += [
            f"## {title}",
            *picture(
                document,
                f"benchmark-tensorrt-{model['model']}",
                f"Requests per second of {title.replace('The', 'the')}, by the number of clients "
                "and by server",
            ),
            "[tensorrt.json](tensorrt.json) has the shortest, longest and average time, the number "
            "of requests and every trial.",
        ]
        for workload in design["workloads"]:
            sections += _workload(workload, model, title)
        sections += _baseline(model)
    return result_page(
        document,
        "The TensorRT container's serving path on the CPU, against the published layout",
        [
            *sections,
            "## The server and the load driver alone",
            f"Over a model that computes nothing, the medians of {starts} of each program:",
            overhead_as_list(document["overhead"]),
            "The load driver against a server that does nothing, including this server's time:",
            driver_as_list(document["driver"], "p99"),
        ],
        f"Threads of every server: {design['cores']}. Slipway's largest batch: "
        f"{design['max_batch_size']} texts.",
        "A cell is left out if the published layout would answer after "
        f"{design['longest_seconds']:g} s. SageMaker's limit is 60 s.",
        f"Order, requests and random weights: seed {design['seed']}.",
        CLOSED_LOOP,
    )


def _workload(workload: Document, model: Document, title: str) -> Iterator[str]:
    least, most = workload["least_new_tokens"], workload["most_new_tokens"]
    length = f"{least}" if least == most else f"{least} to {most}"
    sampled = ", sampled" if workload["is_sampled"] else ""
    if workload["top_k"] is not None:
        sampled += f" with `top_k` {workload['top_k']}"
    yield (
        f"### {title}: {counted(workload['texts'], 'text')} a request, "
        f"{workload['prompt_tokens']} + {length} tokens{sampled}"
    )
    against = [system for system in workload["systems"] if system != System.SLIPWAY]
    found = {
        (each["concurrency"], each["system"]): each
        for each in (*model["cells"], *model["left_out"])
        if each["workload"] == workload["name"]
    }
    rows = []
    for concurrency in workload["concurrencies"]:
        for system in workload["systems"]:
            cell = found.get((concurrency, system))
            if cell is None:
                continue
            name = [str(concurrency), System(system).label]
            if "expected_seconds" in cell:
                left_out = f"left out: {cell['expected_seconds']:.0f} s expected"
                rows.append([*name, left_out, *[""] * (2 + len(against))])
                continue
            ratios = [
                _times(cell, found.get((concurrency, other))) if system == System.SLIPWAY else ""
                for other in against
            ]
            latencies = (significant(cell[f"{each}_milliseconds"]) for each in ("p50", "p99"))
            rows.append([*name, significant(cell["requests_per_second"]), *ratios, *latencies])
    header = ["clients", "server", "QPS", *(f"of {_AGAINST[System(each)]}'s" for each in against)]
    yield table([*header, "p50 ms", "p99 ms"], rows)


def _times(cell: Document, baseline: Document | None) -> str:
    if baseline is None or "expected_seconds" in baseline:
        return ""
    return f"{cell['requests_per_second'] / baseline['requests_per_second']:.2f} x"


def _baseline(model: Document) -> Iterator[str]:
    calibration, agreement = model["calibration"], model["agreement"]
    layouts = (
        f"The published layout: {_layout(calibration['alone'])} for one client, "
        f"{_layout(calibration['together'])} for several"
    )
    if calibration["candidates"]:
        yield f"{layouts}. It was chosen by these measurements with a cache:"
        yield items(*map(_candidate, calibration["candidates"]))
    else:
        yield f"{layouts}, as `--workers` says."
    yield (
        f"The servers gave the same tokens for {agreement['same']} of {agreement['texts']} texts. "
        "Each answer had all of its new tokens."
    )


def _layout(layout: Document) -> str:
    return f"{counted(layout['workers'], 'worker')} with {counted(layout['threads'], 'thread')}"


def _candidate(candidate: Document) -> str:
    alone, together = candidate["requests_per_second"]
    return (
        f"{_layout(candidate)}: {significant(alone['requests_per_second'])} requests/s with 1 "
        f"client, {significant(together['requests_per_second'])} with {together['clients']}"
    )
