"""A machine of stand-ins for every test of this folder that asks for one."""

import os

import pytest

from tests.containers.tensorrt.runtimes.machine import standin_machine

# CUDA reads it at its first call: made-up addresses would do harm on a GPU, were there one.
os.environ["CUDA_VISIBLE_DEVICES"] = ""


@pytest.fixture
def machine():
    with standin_machine() as made:
        yield made
