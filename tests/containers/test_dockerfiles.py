"""What every Dockerfile of the containers must pass."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.dockerfiles import CONTAINERS


@pytest.mark.parametrize("family", ["lmi", "neuron", "triton"])
def test_hadolint_finds_nothing(family: str):
    done = subprocess.run(
        [Path(sys.executable).parent / "hadolint", CONTAINERS / family / "Dockerfile"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
