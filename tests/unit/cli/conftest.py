"""What tests of commands share."""

import pytest

from tests.support.projects import write_project
from tests.unit.cli import first_configs


@pytest.fixture
def slipway(tmp_path, monkeypatch, slipway_command):
    """Runs a command in a new project."""
    monkeypatch.chdir(write_project(tmp_path, {}, environments=first_configs.ENVIRONMENTS))
    return slipway_command
