"""Writes the result as JSON with every trial, and as a page of Markdown."""

from dataclasses import asdict, replace
from typing import Any

from benchmarks.baselines.stack import Layout
from benchmarks.driver import CLOSED_LOOP, Driver, driver_as_json, driver_as_list
from benchmarks.estimates import Verdict
from benchmarks.overhead import (
    CONNECTIONS,
    LONGEST_P50_SECONDS,
    MOST_TIMES_THE_ECHO,
    Costs,
    Program,
    overhead_as_json,
)
from benchmarks.report import (
    MILLISECONDS,
    QUICK,
    Context,
    capitalized,
    counted,
    interval,
    interval_note,
    items,
    page,
    picture,
    rounded,
    significant,
    table,
)
from benchmarks.summary import CellSummary
from benchmarks.tensorrt.calibration import CONCURRENCY, Calibration
from benchmarks.tensorrt.design import Cell, Design, System, Workload
from benchmarks.tensorrt.summary import GoalSummary, ModelSummary, Summary

_LATENCIES = ("shortest", "longest", "average", "p50", "p99")


# Any: JSON, as below.
def as_json(
    design: Design, summary: Summary, costs: Costs, driver: Driver, context: Context
) -> dict[str, Any]:
    """Returns the whole result as one JSON document; times are in milliseconds.

    Args:
        design: the plan of the run.
        summary: the computed results.
        costs: the measurements of the server over a model that computes nothing.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    return {
        "benchmark": "tensorrt",
        **context.as_json(),
        "design": asdict(design),
        "goals": [
            {
                "goal": found.goal.title,
                "least": found.goal.least,
                "ratio": rounded(found.ratio) if found.ratio else None,
                "verdict": found.verdict,
            }
            for found in summary.goals
        ],
        "overhead": overhead_as_json(summary.overhead, costs),
        "driver": driver_as_json(driver, _LATENCIES),
        "models": [_model(model) for model in summary.models],
    }


def _model(summary: ModelSummary) -> dict[str, Any]:
    session = summary.session
    return {
        "model": session.model.name,
        "agreement": asdict(session.agreement),
        "calibration": {
            "alone": asdict(session.calibration.alone),
            "together": asdict(session.calibration.together),
            "candidates": [
                {
                    **asdict(each.layout),
                    "requests_per_second": [
                        {"clients": 1, "requests_per_second": round(each.alone, 3)},
                        {"clients": CONCURRENCY, "requests_per_second": round(each.together, 3)},
                    ],
                }
                for each in session.calibration.measured
            ],
        },
        "left_out": [
            {**_cell(cell), "expected_seconds": round(seconds, 1)}
            for cell, seconds in session.left_out.items()
        ],
        "cells": [
            {**_cell(cell), **found.as_json(session.trials, "requests_per_second", _LATENCIES)}
            for cell, found in summary.cells.items()
        ],
    }


def _cell(cell: Cell) -> dict[str, Any]:
    return {"workload": cell.workload.name, "system": cell.system, "concurrency": cell.concurrency}


def as_markdown(design: Design, summary: Summary, driver: Driver, context: Context) -> str:
    """Returns the result as a page: the goals, plots, a table for each workload, the rest.

    Args:
        design: the plan of the run.
        summary: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    sections = [
        "# The TensorRT container's serving path on the CPU, against the published layout",
        *([QUICK] if design.is_quick else []),
        _goals(design, summary),
    ]
    for model in summary.models:
        if not design.is_quick:  # plots are drawn from the committed results alone
            sections += _plot(model)
        for workload in design.workloads:
            sections += _workload(design, workload, model)
        sections.append(_baseline(model))
    sections += ["## The server and the load driver alone", _alone(summary, driver)]
    sections += [
        "## Circumstances",
        context.as_list(
            f"Threads of every server: {design.cores}. Slipway's largest batch: "
            f"{design.max_batch_size} texts.",
            "A cell is left out if the published layout would answer after "
            f"{design.longest_seconds:g} s. SageMaker's limit is 60 s.",
            f"Order, requests and random weights: seed {design.seed}.",
            CLOSED_LOOP,
            "[What is measured, and how to read it](../README.md).",
        ),
    ]
    return page(sections)


def _goals(design: Design, summary: Summary) -> str:
    title = capitalized(design.models[0].title)
    rows = [
        [f"{title}: {found.goal.title}", f"at least {found.goal.least:g}", *_ratio_cells(found)]
        for found in summary.goals
    ]
    overhead = summary.overhead
    rows += [
        [
            "The server over a stub model: p50 of a lone request",
            f"under {LONGEST_P50_SECONDS * MILLISECONDS:g} ms",
            f"{overhead.p50.value * MILLISECONDS:.2f} ms",
            interval(overhead.p50, MILLISECONDS),
            str(overhead.p50_verdict),
        ],
        [
            f"The server over a stub model: processor time of a request with {CONNECTIONS} "
            "connections, against uvicorn's echo",
            f"at most {MOST_TIMES_THE_ECHO:g}",
            f"{overhead.ratio.value:.2f}",
            interval(overhead.ratio),
            str(overhead.ratio_verdict),
        ],
    ]
    verdicts = [found.verdict for found in summary.goals]
    verdicts += [overhead.p50_verdict, overhead.ratio_verdict]
    met = sum(verdict is Verdict.MET for verdict in verdicts)
    return (
        f"**{met} of {len(verdicts)} goals met.**\n\n"
        f"{table(['goal', '', 'found', '95 % interval', ''], rows)}\n\n"
        f"{interval_note(design.trials)} The stub has {counted(overhead.starts, 'start')}, each of "
        "which counts as a trial."
    )


def _ratio_cells(found: GoalSummary) -> list[str]:
    if found.ratio is None:
        return ["", "", str(found.verdict)]
    return [f"{found.ratio.value:.2f}", interval(found.ratio), str(found.verdict)]


def _plot(model: ModelSummary) -> list[str]:
    """Returns a heading, the plot of a model's requests per second, and where the rest is."""
    described = model.session.model
    return [
        f"## {capitalized(described.title)}",
        picture(
            f"benchmark-tensorrt-{described.name}",
            f"Requests per second of {described.title}, by the number of clients and by server",
        ),
        "[tensorrt.json](tensorrt.json) has the shortest, longest and average time, the number of "
        "requests and every trial.",
    ]


def _workload(design: Design, workload: Workload, model: ModelSummary) -> list[str]:
    """Returns the heading and the table of one workload."""
    cells = design.cells(model.session.model)
    fixed = workload.least_new_tokens == workload.most_new_tokens
    length = (
        f"{workload.least_new_tokens}"
        if fixed
        else f"{workload.least_new_tokens} to {workload.most_new_tokens}"
    )
    rows = [
        _row(cell, model)
        for concurrency in workload.concurrencies
        for system in workload.systems
        for cell in [Cell(model.session.model, workload, system, concurrency)]
        if cell in cells
    ]
    against = [system for system in workload.systems if system is not System.SLIPWAY]
    header = [
        "clients",
        "server",
        "QPS",
        *(f"of {_short(system)}'s" for system in against),
        "p50 ms",
        "p99 ms",
    ]
    return [
        f"### {capitalized(model.session.model.title)}: {counted(workload.texts, 'text')} a "
        f"request, {workload.prompt_tokens} + {length} tokens{_sampling(workload)}",
        table(header, rows),
    ]


def _sampling(workload: Workload) -> str:
    if not workload.is_sampled:
        return ""
    return ", sampled" if workload.top_k is None else f", sampled with `top_k` {workload.top_k}"


def _row(cell: Cell, model: ModelSummary) -> list[str]:
    against = [system for system in cell.workload.systems if system is not System.SLIPWAY]
    name = [str(cell.concurrency), cell.system.label]
    found = model.cells.get(cell)
    if found is None:
        seconds = model.session.left_out[cell]
        return [*name, f"left out: {seconds:.0f} s expected", *[""] * (2 + len(against))]
    ratios = [_times(found, model.cells.get(replace(cell, system=system))) for system in against]
    latencies = found.latencies
    return [
        *name,
        significant(found.requests_per_second),
        *(ratios if cell.system is System.SLIPWAY else [""] * len(against)),
        *(significant(seconds * MILLISECONDS) for seconds in (latencies.p50, latencies.p99)),
    ]


def _times(found: CellSummary[Cell], baseline: CellSummary[Cell] | None) -> str:
    if baseline is None:
        return ""
    return f"{found.requests_per_second / baseline.requests_per_second:.2f} x"


def _short(system: System) -> str:
    return {
        System.STATIC: "static batching",
        System.BARE: "the bare loop",
        System.CACHED: "the cached layout",
        System.UNCACHED: "the published layout",
    }[system]


def _baseline(model: ModelSummary) -> str:
    calibration, agreement = model.session.calibration, model.session.agreement
    return (
        f"{_layouts(calibration)}\n\nThe servers gave the same tokens for {agreement.same} of "
        f"{agreement.texts} texts. Each answer had all of its new tokens."
    )


def _layouts(calibration: Calibration) -> str:
    text = (
        f"The published layout: {_layout(calibration.alone)} for one client, "
        f"{_layout(calibration.together)} for several"
    )
    if not calibration.measured:
        return f"{text}, as `--workers` says."
    measured = items(
        *(
            f"{_layout(each.layout)}: {significant(each.alone)} requests/s with 1 client, "
            f"{significant(each.together)} with {CONCURRENCY}"
            for each in calibration.measured
        )
    )
    return f"{text}. It was chosen by these measurements with a cache:\n\n{measured}"


def _layout(layout: Layout) -> str:
    return f"{counted(layout.workers, 'worker')} with {counted(layout.threads, 'thread')}"


def _alone(summary: Summary, driver: Driver) -> str:
    overhead = summary.overhead
    stub = items(
        *(
            f"{label}: p50 {overhead.p50_seconds[program] * MILLISECONDS:.2f} ms with 1 client, "
            f"{overhead.processor_seconds[program] * MILLISECONDS:.3f} ms of processor time a "
            f"request with {CONNECTIONS}"
            for program, label in (
                (Program.SLIPWAY, "Slipway's server"),
                (Program.ECHO, "uvicorn's echo, with h11"),
            )
        )
    )
    return (
        "Over a model that computes nothing, the medians of "
        f"{counted(overhead.starts, 'start')} of each program:\n\n{stub}\n\n"
        "The load driver against a server that does nothing, including this server's time:\n\n"
        f"{driver_as_list(driver, 'p99')}"
    )
