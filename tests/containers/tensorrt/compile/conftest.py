"""Compile jobs of the TensorRT container."""

import shutil

import pytest

from tests.containers.tensorrt.compile.jobs import HYPERPARAMETERS, SAMPLE
from tests.support.compile_jobs import Job


@pytest.fixture
def make_job(tmp_path_factory):
    jobs = []

    def make():
        jobs.append(Job(tmp_path_factory.mktemp("job"), "tensorrt", HYPERPARAMETERS))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


@pytest.fixture
def job(make_job):
    """A job whose checkpoint is the committed sample, without its graph."""
    made = make_job()
    for path in SAMPLE.iterdir():
        if path.suffix != ".onnx":
            shutil.copyfile(path, made.weights / path.name)
    return made
