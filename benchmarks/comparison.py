"""Measures a container beside a baseline: one model after the other, with the load driver alone."""

import argparse
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from benchmarks.baselines.stack import check_requirements, nginx_version
from benchmarks.models import Model
from benchmarks.program import Run, Say
from benchmarks.report import Context

PACKAGES = (
    "flask",
    "gunicorn",
    "numpy",
    "onnxruntime",
    "starlette",
    "tokenizers",
    "torch",
    "transformers",
    "uvicorn",
)

Alone = TypeVar("Alone")
Session = TypeVar("Session")


def measure_models(
    options: argparse.Namespace,
    target: str,
    models: Iterable[Model],
    measure_alone: Callable[[Path, Say], Alone],
    measure_model: Callable[[Model, Path, Say], Session],
) -> tuple[Alone, list[Session], Context]:
    """Measures the load driver and the server alone, and every model.

    Args:
        options: the result of `Parser.parse`.
        target: the target of make that installs the baseline.
        models: measured in their order.
        measure_alone: measures what needs no model; takes a log, and lines of progress.
        measure_model: measures a model; takes an empty folder, and lines of progress.

    Returns:
        The result of `measure_alone`, the measurements of the models, and the circumstances.

    Raises:
        BenchmarkError: something is not installed, or a measurement failed.
    """
    check_requirements(target)
    run = Run((), PACKAGES, options.command)
    with tempfile.TemporaryDirectory(prefix="slipway-benchmark-") as temporary:
        run.say("the load driver alone")
        alone = measure_alone(Path(temporary, "idle.log"), run.say)
        sessions = []
        for model in models:
            folder = Path(temporary, model.name)
            folder.mkdir()
            sessions.append(measure_model(model, folder, run.say))
    context = run.end()
    context.machine.versions["nginx"] = nginx_version()
    return alone, sessions, context
