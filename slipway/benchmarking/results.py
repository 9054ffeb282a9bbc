"""The files of a run: its requests as JSON lines, and the JSON document behind its reports."""

import json
import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

import slipway
from slipway.benchmarking.answers import Observed
from slipway.benchmarking.design import Cell
from slipway.benchmarking.figures import over_trials
from slipway.benchmarking.load import Sample
from slipway.benchmarking.run import Run, TrialRow
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.json_text import parse_json

FORMAT: Final = 1
ROWS, SUMMARY = "rows.jsonl", "summary.json"
FOLDER: Final = "build/bench"
"""Where runs are, in the project: a folder for each model."""

Document = Mapping[str, Any]
"""A parsed summary."""

_MILLISECONDS = 1000.0


def run_folder(root: Path, model: str, environment: str, began_at: datetime) -> Path:
    """Returns the folder of a run."""
    return root / FOLDER / model / f"{environment}-{began_at:%Y%m%dT%H%M%SZ}"


def request_rows(
    row: TrialRow, requests: Sequence[tuple[Sample, Observed]]
) -> Iterable[dict[str, Any]]:
    """Yields one row for each request; times are milliseconds from the trial's first request."""
    start = min(sample.intended_at for sample, _ in requests)
    for sample, observed in requests:
        yield {
            **row.cell.levels(),
            "trial": row.round,
            "order": row.order,
            "intended_milliseconds": _rounded((sample.intended_at - start) * _MILLISECONDS),
            "late_milliseconds": _rounded(observed.late_seconds * _MILLISECONDS),
            "latency_milliseconds": _rounded(observed.latency_seconds * _MILLISECONDS),
            "first_token_milliseconds": _milliseconds(observed.first_seconds),
            "between_tokens_milliseconds": _milliseconds(observed.between_seconds),
            "tokens": observed.tokens,
            "parts": observed.parts,
            "variant": observed.variant,
            "kind": observed.kind,
            "failure": observed.failure,
        }


def as_document(run: Run, began_at: datetime, ended_at: datetime) -> dict[str, Any]:
    """Returns everything that a report needs."""
    endpoint, loaded = run.endpoint, run.loaded
    published = loaded.design.published
    return {
        "format": FORMAT,
        "model": endpoint.model,
        "environment": endpoint.environment.name,
        "region": endpoint.environment.region,
        "endpoint": endpoint.name,
        "is_local": endpoint.environment.is_local,
        "design": loaded.name,
        "description": loaded.design.description,
        "trials": loaded.design.trials,
        "seed": loaded.design.seed,
        "is_open": loaded.design.is_open,
        "tokenizer": run.tokenizer_note if run.tokenizer is not None else None,
        "began_at": began_at.isoformat(timespec="seconds"),
        "ended_at": ended_at.isoformat(timespec="seconds"),
        "stopped": run.stopped,
        "client": _client(),
        "self_test": [asdict(level) for level in run.levels],
        "cells": [_cell(run, cell) for cell in loaded.cells()],
        "measured": [_trial(row) for row in run.trials],
        "published": published.model_dump() if published else None,
    }


def _client() -> dict[str, Any]:
    return {
        "slipway": slipway.__version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load_average": round(os.getloadavg()[0], 2),
    }


def _cell(run: Run, cell: Cell) -> dict[str, Any]:
    rows = [row for row in run.trials if row.cell == cell]
    good = [row for row in rows if row.counts]
    refused = next(
        (
            level.reason
            for level in run.levels
            if level.reason is not None
            and (level.concurrency, level.requests_per_second)
            == (cell.concurrency, cell.requests_per_second)
        ),
        None,
    )
    limits = [row.client_limit for row in rows if row.client_limit is not None]
    generator = np.random.default_rng(run.loaded.design.seed)
    figures = over_trials([row.figures for row in good], generator)
    failures: dict[str, int] = {}
    for row in rows:
        for kind, count in row.failures.items():
            failures[kind] = failures.get(kind, 0) + count
    return {
        "levels": cell.levels(),
        "trials": len(good),
        "not_measured": refused or (limits[0] if limits and not good else None),
        "client_bound_trials": len(limits),
        "figures": {
            name: {
                "value": _rounded(found.estimate.value),
                "low": _rounded(found.estimate.low),
                "high": _rounded(found.estimate.high),
                "deviation": _rounded(found.deviation),
            }
            for name, found in figures.items()
        },
        "failures": failures,
        "instances": sorted({_fleet(row) for row in rows}),
        "cost": next((row.cost.why for row in reversed(rows)), None),
    }


def _fleet(row: TrialRow) -> str:
    return " and ".join(
        f"{each.count} x {' or '.join(each.types) or 'unknown'}" for each in row.instances
    )


def _trial(row: TrialRow) -> dict[str, Any]:
    return {
        "levels": row.cell.levels(),
        "round": row.round,
        "order": row.order,
        "began_at": row.began_at.isoformat(timespec="seconds"),
        "figures": {name: _rounded(value) for name, value in row.figures.items()},
        "failures": dict(row.failures),
        "instances": _fleet(row),
        "usd_per_hour": _rounded(row.cost.usd),
        "client_limit": row.client_limit,
        "is_cut": row.is_cut,
    }


def read_document(folder: Path) -> Document:
    """Reads the summary of a run.

    Raises:
        UserError: there is none, or it is of another kind.
    """
    path = folder / SUMMARY if folder.is_dir() else folder
    try:
        found = parse_json(path.read_bytes())
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UserError.of(
            Code.BENCH_RESULT,
            f"{path} cannot be read: {reason}",
            "Name the folder of a run, which `slipway bench` prints at its end.",
        ) from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise UserError.of(
            Code.BENCH_RESULT,
            f"{path} is no summary of this version of `slipway bench`",
            "Measure again, or use the version of Slipway that wrote it.",
        )
    return found


def find_runs(root: Path, model: str, environment: str) -> list[Path]:
    """Returns the folders of a model's runs that have a summary, the newest first."""
    found = (root / FOLDER / model).glob(f"{environment}-*/{SUMMARY}")
    return sorted((path.parent for path in found), reverse=True)


def dumped(rows: Iterable[Mapping[str, Any]]) -> str:
    """Returns rows as JSON lines."""
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else _rounded(seconds * _MILLISECONDS)


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
