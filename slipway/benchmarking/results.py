"""The files of a run: its requests as JSON lines, and the JSON document behind its reports."""

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

import slipway
from slipway.benchmarking.answers import Observed
from slipway.benchmarking.design import Cell
from slipway.benchmarking.figures import over_trials
from slipway.benchmarking.run import Run, Trial
from slipway.codes.code import Code
from slipway.errors import UserError
from slipway.json_text import parse_json

FORMAT: Final = 1
ROWS, SUMMARY = "rows.jsonl", "summary.json"
FOLDER: Final = "build/bench"
"""Where runs are, in the project: a folder for each model."""

Document = Mapping[str, Any]
"""A parsed summary."""


def request_lines(trial: Trial, requests: Iterable[Observed]) -> str:
    place = {**trial.levels, "trial": trial.round, "order": trial.order}
    rows = ({**place, **asdict(each)} for each in requests)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def as_document(run: Run, began_at: datetime, ended_at: datetime) -> dict[str, Any]:
    environment, design = run.endpoint.environment, run.loaded.design
    return {
        "format": FORMAT,
        "model": run.endpoint.model,
        "environment": environment.name,
        "region": environment.region,
        "endpoint": run.endpoint.name,
        "is_local": environment.is_local,
        "design": run.loaded.name,
        "description": design.description,
        "trials": design.trials,
        "seed": design.seed,
        "is_open": design.is_open,
        "tokenizer": run.tokenizer_note if run.tokenizer is not None else None,
        "began_at": began_at.isoformat(timespec="seconds"),
        "ended_at": ended_at.isoformat(timespec="seconds"),
        "stopped": run.stopped,
        "client": {
            "slipway": slipway.__version__,
            "python": platform.python_version(),
            "system": f"{platform.system()} {platform.machine()}",
            "cores": os.cpu_count(),
            "load_average": round(os.getloadavg()[0], 2),
        },
        "self_test": [asdict(level) for level in run.levels],
        "cells": [_cell(run, cell) for cell in run.bodies],
        "measured": [asdict(trial) for trial in run.trials],
        "published": design.published.model_dump() if design.published else None,
    }


def _cell(run: Run, cell: Cell) -> dict[str, Any]:
    trials = [trial for trial in run.trials if trial.levels == cell.levels()]
    good = [trial for trial in trials if trial.counts]
    refused = run.refused.get(cell.load)
    limits = [trial.client_limit for trial in trials if trial.client_limit is not None]
    failures = sum((Counter(trial.failures) for trial in trials), Counter[str]())
    generator = np.random.default_rng(run.loaded.design.seed)
    return {
        "levels": cell.levels(),
        "trials": len(good),
        "not_measured": refused or (limits[0] if limits and not good else None),
        "client_bound_trials": len(limits),
        "figures": over_trials([trial.figures for trial in good], generator),
        "failures": dict(failures),
        "instances": sorted({trial.instances for trial in trials}),
        "cost": trials[-1].cost if trials else None,
    }


def read_document(folder: Path) -> Document:
    """Reads the summary of a run; raises `UserError` if there is none, or one of another kind."""
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
