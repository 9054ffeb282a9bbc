"""A predictor with workers on stand-ins of the device, and what it answers."""

import json
from contextlib import closing, contextmanager

from containers.neuron.predictor import NeuronPredictor
from containers.neuron.settings import NeuronSettings
from containers.neuron.workers import RestartPolicy
from tests.containers.neuron.machine import VERSIONS, compiled_model, make_machine


@contextmanager
def opened(directory, *, workers=1, **options):
    with closing(NeuronPredictor(NeuronSettings(workers=workers), **options)) as predictor:
        predictor.load(directory)
        yield predictor


@contextmanager
def loaded_predictor(
    tmp_path,
    monkeypatch,
    *,
    workers=1,
    cores=4,
    max_batch_size=2,
    max_inputs=256,
    target="inf1",
    **model,
):
    machine = make_machine(tmp_path, cores=cores, versions=VERSIONS[target])
    machine.enter(monkeypatch)
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


def answer(predictor, **body):
    """Asks as the serving core does."""
    waiting = list(predictor.parse(json.dumps(body).encode()))
    outputs = [None] * len(waiting)
    places = list(range(len(waiting)))
    while places:
        chosen = [places[i] for i in predictor.choose([waiting[place] for place in places], 2)]
        for place, output in zip(
            chosen, predictor.predict([waiting[place] for place in chosen]), strict=True
        ):
            outputs[place] = output
        places = [place for place in places if place not in chosen]
    return json.loads(predictor.render(outputs))
