"""A copy of the project, in which the commands of a page run."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from demo import copy_project
from slipway.embedded_aws import control


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Path]:
    copy_project(tmp_path)
    yield tmp_path
    control.stop(tmp_path)
