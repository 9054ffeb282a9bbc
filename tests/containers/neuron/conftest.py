from contextlib import contextmanager

import pytest

from containers.neuron.workers import RestartPolicy
from tests.containers.neuron.machine import VERSIONS, compiled_model, make_machine, opened


@pytest.fixture
def loaded(tmp_path, monkeypatch):
    """A predictor with workers on stand-ins of the device, for a model that is made for it."""

    @contextmanager
    def load(*, workers=1, cores=4, max_batch_size=2, max_inputs=256, target="inf1", **model):
        make_machine(tmp_path, cores=cores, versions=VERSIONS[target]).enter(monkeypatch)
        directory = compiled_model(
            tmp_path / "model", batch_size=max_batch_size, target=target, **model
        )
        with opened(
            directory,
            workers=workers,
            max_batch_size=max_batch_size,
            max_inputs=max_inputs,
            policy=RestartPolicy(first_pause_seconds=0.01),
        ) as predictor:
            yield predictor

    return load
