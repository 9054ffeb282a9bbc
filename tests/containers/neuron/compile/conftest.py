"""Compile jobs of the Neuron container."""

import os

import pytest

from tests.containers.neuron.compile.jobs import HYPERPARAMETERS, NeuronJob, write_checkpoint_files


@pytest.fixture
def make_job(tmp_path_factory, monkeypatch):
    for name in os.environ:
        if name.startswith(("SLIPWAY", "NEURON")):
            monkeypatch.delenv(name)
    jobs = []

    def make():
        jobs.append(NeuronJob(tmp_path_factory.mktemp("job"), "neuron", HYPERPARAMETERS))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


@pytest.fixture
def job(make_job):
    made = make_job()
    write_checkpoint_files(made.weights)
    return made
