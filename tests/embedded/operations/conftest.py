"""What tests of operations share."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.imported_endpoints import ImportedPlan


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, slipway_command: Any) -> ImportedPlan:
    return ImportedPlan(tmp_path, monkeypatch, slipway_command)
