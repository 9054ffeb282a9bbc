"""Writes the result as JSON with every trial, and as a page of Markdown."""

from dataclasses import asdict, replace
from typing import Any

from benchmarks.baselines.stack import Layout
from benchmarks.driver import CLOSED_LOOP, Driver, driver_as_json, driver_as_list
from benchmarks.estimates import Verdict
from benchmarks.report import (
    MILLISECONDS,
    QUICK,
    Context,
    capitalized,
    counted,
    interval,
    items,
    milliseconds,
    page,
    picture,
    rounded,
    significant,
    table,
)
from benchmarks.summary import CellSummary
from benchmarks.tensorrt.calibration import CONCURRENCY, Calibration
from benchmarks.tensorrt.design import (
    LONGEST_OVERHEAD_SECONDS,
    Cell,
    Design,
    System,
    Workload,
)
from benchmarks.tensorrt.summary import GoalSummary, ModelSummary, Summary

_LATENCIES = ("shortest", "longest", "average", "p50", "p99")


def as_json(design: Design, summary: Summary, driver: Driver, context: Context) -> dict[str, Any]:
    """Returns the whole result as one JSON document; times are in milliseconds.

    Args:
        design: the plan of the run.
        summary: the computed results.
        driver: the load driver alone.
        context: time, place and commit of the run.
    """
    overhead = summary.overhead
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
        "overhead": {
            "model": design.overhead_model.name,
            "goal_milliseconds": LONGEST_OVERHEAD_SECONDS * MILLISECONDS,
            "http_p50_milliseconds": milliseconds(overhead.http_p50),
            "bare_p50_milliseconds": milliseconds(overhead.bare_p50),
            "added_milliseconds": rounded(overhead.added, per_unit=MILLISECONDS),
            "verdict": overhead.verdict,
            "pairs": [
                {
                    "http_milliseconds": list(map(milliseconds, each.http_seconds)),
                    "bare_milliseconds": list(map(milliseconds, each.bare_seconds)),
                }
                for model in summary.models
                if (each := model.session.overhead)
            ],
        },
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
            sections += _workload(workload, model)
        sections.append(_baseline(model))
    sections += ["## The server and the load driver alone", _alone(design, summary, driver)]
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
    added, goal = summary.overhead.added, LONGEST_OVERHEAD_SECONDS * MILLISECONDS
    rows.append(
        [
            "p50 of a request minus its decode loop, concurrency 1",
            f"under {goal:g} ms",
            f"{added.value * MILLISECONDS:.2f} ms",
            interval(added, MILLISECONDS),
            str(summary.overhead.verdict),
        ]
    )
    verdicts = [found.verdict for found in summary.goals] + [summary.overhead.verdict]
    met = sum(verdict is Verdict.MET for verdict in verdicts)
    return (
        f"**{met} of {len(verdicts)} goals met.**\n\n"
        f"{table(['goal', '', 'found', '95 % interval', ''], rows)}"
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


def _workload(workload: Workload, model: ModelSummary) -> list[str]:
    """Returns the heading and the table of one workload."""
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
        f"request, {workload.prompt_tokens} + {length} tokens",
        table(header, rows),
    ]


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


def _alone(design: Design, summary: Summary, driver: Driver) -> str:
    overhead = summary.overhead
    return (
        f"One text, {design.workloads[0].prompt_tokens} + "
        f"{design.workloads[0].least_new_tokens} tokens, {design.overhead_model.title}, "
        f"{design.overhead_pairs} pairs: p50 {overhead.http_p50 * MILLISECONDS:.2f} ms "
        f"through HTTP, {overhead.bare_p50 * MILLISECONDS:.2f} ms in the bare decode loop.\n\n"
        "The load driver against a server that does nothing, including this server's time:\n\n"
        f"{driver_as_list(driver, 'p99')}"
    )
