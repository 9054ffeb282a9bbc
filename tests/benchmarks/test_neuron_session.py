"""The Neuron container's benchmark with real servers: what runs without PyTorch and nginx."""

import json
import os
import shutil
from dataclasses import replace

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.neuron import session
from benchmarks.neuron.design import MIXED, SAMPLE, Cell, Server, System, full_design, quick
from benchmarks.neuron.models import SAMPLE_TOKENIZER
from benchmarks.neuron.servers import Servers
from benchmarks.neuron.session import measure_model
from benchmarks.neuron.workloads import make_requests

OURS = Server(System.SLIPWAY, 1, 6)
WORKLOAD = replace(MIXED, workers=(1,), batch_sizes=(6,), concurrencies=(1, 3))
FULL = full_design(trials=3, stated_trials=1, seed=1)
DESIGN = replace(quick(FULL), models=(SAMPLE,), workloads=(WORKLOAD,), seconds=0.01)

pytestmark = pytest.mark.size("all")


def nothing_said(_text: str) -> None:
    pass


@pytest.fixture
def committed(monkeypatch):
    """The committed sample as the model directory, and Slipway's server in the naive one's place.

    It has no TorchScript, which takes PyTorch to make; what differs is what a test makes differ.
    """
    monkeypatch.setattr(session, "ensure_model", lambda *_: SAMPLE_TOKENIZER.parent)
    started = Servers.port
    monkeypatch.setattr(Servers, "port", lambda self, _server: started(self, OURS))


@pytest.mark.usefixtures("committed")
def test_everything_of_one_model_is_measured_after_the_answers_were_compared(tmp_path):
    said: list[str] = []
    found = measure_model(DESIGN, SAMPLE, tmp_path, models=tmp_path, say=said.append)
    rounds = [[cell.key for cell in cells] for cells in DESIGN.rounds(SAMPLE)]
    assert [trial.cell.key for trial in found.trials] == [key for keys in rounds for key in keys]
    for trial in found.trials:
        assert len(trial.result.latencies_seconds) == trial.cell.concurrency
        assert trial.result.requests_per_second > 0
    assert said[:3] == [
        "starting slipway-batch-6-workers-1",
        "answers compared  bert-qa mixed slipway-batch-6-workers-1 x4",
        "answers compared  bert-qa mixed torchscript-batch-1-workers-1 x4",
    ]
    requests = len(found.tokens[WORKLOAD])
    timed = sum(count for trial in found.trials for _, _, count in trial.result.answers)
    assert found.answers == 2 * requests + timed


@pytest.mark.usefixtures("committed")
def test_a_server_that_answers_otherwise_ends_the_benchmark(tmp_path, monkeypatch):
    read = session.read_answer
    answered = 0

    def read_one_otherwise(request, answer):
        nonlocal answered
        answered += 1
        found = read(request, answer)
        # Of the second server, after all of the first one's.
        return replace(found, end=found.end + 1) if answered > 50 else found

    monkeypatch.setattr(session, "read_answer", read_one_otherwise)
    with pytest.raises(BenchmarkError, match="is another answer than the first server's"):
        measure_model(DESIGN, SAMPLE, tmp_path, models=tmp_path, say=nothing_said)


def test_a_server_that_does_not_start_is_reported_with_its_last_words(tmp_path):
    model = tmp_path / "model"
    shutil.copytree(SAMPLE_TOKENIZER.parent, model)
    manifest = json.loads((model / "neuron.json").read_text())
    (model / "neuron.json").write_text(json.dumps(manifest | {"batch_size": 2}))
    (tmp_path / "logs").mkdir()
    with (
        Servers(tmp_path / "logs", model, cores=2, environ=os.environ, say=nothing_said) as servers,
        pytest.raises(BenchmarkError, match="batch_size is 2, and SLIPWAY_MAX_BATCH_SIZE is 6"),
    ):
        servers.port(OURS)


@pytest.mark.usefixtures("committed")
def test_a_request_that_fails_ends_the_benchmark(tmp_path, monkeypatch):
    [request, *_] = make_requests(WORKLOAD, SAMPLE_TOKENIZER, 1)
    bad = (replace(request, question=""),) * 4
    monkeypatch.setattr(session, "make_requests", lambda *_: bad)
    message = r"x4: a request was answered with 400: .*question is an empty string"
    with pytest.raises(BenchmarkError, match=message):
        measure_model(DESIGN, SAMPLE, tmp_path, models=tmp_path, say=nothing_said)


def test_a_cell_has_a_name():
    assert Cell(SAMPLE, MIXED, OURS, 16).key == "bert-qa mixed slipway-batch-6-workers-1 x16"
