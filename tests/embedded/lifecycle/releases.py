"""A model whose release is published, compiled by a training job, and deployed."""

import contextlib
import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.support.workbench import LATEST, Workbench


@contextlib.contextmanager
def release_bench(folder: Path, prepare: Callable[[Workbench], None]) -> Iterator[Workbench]:
    """Runs an account whose environment deploys releases.

    Args:
        folder: of the project.
        prepare: writes the checkpoint, and changes the config.
    """
    with Workbench(folder) as bench:
        environments = bench.project / "environments.yaml"
        text = environments.read_text("utf-8")
        assert text.count("artifacts: sample") == 1
        environments.write_text(text.replace("artifacts: sample", "artifacts: release"), "utf-8")
        prepare(bench)
        bench.bootstrap()
        bench.deploy_foundation()
        yield bench


def publish(bench: Workbench, model: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Publishes the model for the first time; returns the lock's entry, and the job."""
    assert "the release was never published" in bench.fails("slipway", "plan", model)
    output = bench.must("slipway", "publish", model)
    assert "Compiled for cpu, as the embedded AWS has no accelerator, by training job" in output
    lock = json.loads((bench.project / "model_configs" / f"{model}.lock.json").read_text())
    released: dict[str, Any] = lock["environments"]["local"]
    (summary,) = bench.client("sagemaker").list_training_jobs()["TrainingJobSummaries"]
    name = summary["TrainingJobName"]
    assert released["compiled"]["source"] == f"training job {name}"
    job: dict[str, Any] = bench.client("sagemaker").describe_training_job(TrainingJobName=name)
    assert job["TrainingJobStatus"] == "Completed"
    return released, job


@contextlib.contextmanager
def deployed(bench: Workbench, model: str) -> Iterator[Callable[[Any], Any]]:
    """Deploys the model and destroys it; yields a function that asks it for JSON."""
    bench.deploy(model)

    try:
        yield functools.partial(bench.ask, f"{model}-local")
    finally:
        bench.destroy_from(LATEST, model)
    assert bench.serving_processes() == []
    bench.must("slipway", "leftovers", model)


def refusal(bench: Workbench, model: str, config: Path, old: str, new: str) -> str:
    """Publishes the model with a changed checkpoint; returns why its job failed."""
    before = config.read_text("utf-8")
    assert old in before
    config.write_text(before.replace(old, new), "utf-8")
    try:
        report = bench.fails("slipway", "publish", model)
    finally:
        config.write_text(before, "utf-8")
    assert "failed: AlgorithmError: " in report
    assert ", exit code: 1; the end of its log:" in report
    return report
