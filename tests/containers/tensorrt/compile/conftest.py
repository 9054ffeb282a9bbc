"""Compile jobs of the TensorRT container."""

import contextlib
import shutil

import pytest

from tests.containers.tensorrt.compile.jobs import HYPERPARAMETERS, SAMPLE
from tests.support.compile_jobs import Job


@pytest.fixture
def job(tmp_path_factory):
    """A job whose checkpoint is the committed sample, without its graph."""
    with contextlib.closing(
        Job(tmp_path_factory.mktemp("job"), "tensorrt", HYPERPARAMETERS)
    ) as made:
        for path in SAMPLE.iterdir():
            if path.suffix != ".onnx":
                shutil.copyfile(path, made.weights / path.name)
        yield made
