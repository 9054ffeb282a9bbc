"""Compile jobs of the Triton container."""

import pytest

from tests.containers.tensorrt.compile.jobs import HYPERPARAMETERS
from tests.containers.triton.checkpoints import write_checkpoint_files
from tests.support.compile_jobs import Job


@pytest.fixture
def job(tmp_path_factory):
    made = Job(tmp_path_factory.mktemp("job"), "triton", HYPERPARAMETERS)
    write_checkpoint_files(made.weights)
    return made
