"""A predictor with workers on stand-ins of the device, and what it answers."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.neuron.workers import RestartPolicy
from tests.containers.neuron.machine import VERSIONS, compiled_model, make_machine

Loaded = Callable[..., AbstractContextManager[NeuronPredictor]]


@contextmanager
def loaded_predictor(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    workers: int = 1,
    cores: int = 4,
    max_batch_size: int = 2,
    max_inputs: int = 256,
    target: str = "inf1",
    **model: Any,
) -> Iterator[NeuronPredictor]:
    machine = make_machine(tmp_path, cores=cores, versions=VERSIONS[target])
    for name, value in machine.environment.items():
        monkeypatch.setenv(name, value)
    directory = compiled_model(
        tmp_path / "model", batch_size=max_batch_size, target=target, **model
    )
    predictor = NeuronPredictor(
        NeuronSettings(workers=workers),
        max_batch_size=max_batch_size,
        max_inputs=max_inputs,
        policy=RestartPolicy(first_pause_seconds=0.01),
    )
    try:
        predictor.load(directory)
        yield predictor
    finally:
        predictor.close()


def answer(predictor: NeuronPredictor, **body: Any) -> Any:
    """Asks as the serving core does."""
    waiting = list(predictor.parse(json.dumps(body).encode()))
    outputs: list[Any] = [None] * len(waiting)
    places = list(range(len(waiting)))
    while places:
        chosen = [places[i] for i in predictor.choose([waiting[place] for place in places], 2)]
        for place, output in zip(
            chosen, predictor.predict([waiting[place] for place in chosen]), strict=True
        ):
            outputs[place] = output
        places = [place for place in places if place not in chosen]
    return json.loads(predictor.render(outputs))
