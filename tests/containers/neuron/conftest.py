from functools import partial
from pathlib import Path

import pytest

from tests.containers.neuron.loaded_predictor import Loaded, loaded_predictor


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    return partial(loaded_predictor, tmp_path, monkeypatch)
