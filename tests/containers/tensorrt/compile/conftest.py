"""Compile jobs of the TensorRT container."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator

import pytest

from tests.support.compile_jobs import ROOT, Job, until_gone

__all__ = ["ROOT", "SAMPLE", "Job", "until_gone"]

SAMPLE = ROOT / "samples" / "gpt2-autocomplete" / "model"
HYPERPARAMETERS = {
    "target": "cpu",
    "max_batch_size": "4",
    "max_input_tokens": "20",
    "max_new_tokens": "12",
}


@pytest.fixture
def make_job(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Job]]:
    jobs: list[Job] = []

    def make() -> Job:
        jobs.append(Job(tmp_path_factory.mktemp("job"), "tensorrt", HYPERPARAMETERS))
        return jobs[-1]

    yield make
    for job in jobs:
        if job.process is not None:
            job.process.kill()
            job.process.communicate()


@pytest.fixture
def job(make_job: Callable[[], Job]) -> Job:
    """A job whose checkpoint is the committed sample, without its graph."""
    made = make_job()
    for path in SAMPLE.iterdir():
        if path.suffix != ".onnx":
            shutil.copyfile(path, made.weights / path.name)
    return made
