from functools import partial

import pytest

from tests.containers.neuron.loaded_predictor import loaded_predictor


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    return partial(loaded_predictor, tmp_path, monkeypatch)
