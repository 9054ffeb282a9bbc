"""Compile jobs of the Triton container."""

import pytest

from tests.containers.triton.checkpoints import HYPERPARAMETERS, write_checkpoint_files
from tests.support.compile_jobs import Job


@pytest.fixture
def make_job(tmp_path_factory):
    return lambda: Job(tmp_path_factory.mktemp("job"), "triton", HYPERPARAMETERS)


@pytest.fixture
def job(make_job):
    made = make_job()
    write_checkpoint_files(made.weights)
    return made
