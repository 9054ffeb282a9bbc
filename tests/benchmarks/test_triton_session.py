"""The benchmark of T5 on Triton with real servers: what runs without PyTorch."""

from dataclasses import replace

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.triton import session
from benchmarks.triton.design import SERVERS, Server, System, full_design, quick
from benchmarks.triton.queries import QUERIES
from benchmarks.triton.servers import Servers
from benchmarks.triton.session import measure

FULL = full_design(trials=1, stated_trials=1, seed=1)
DESIGN = replace(quick(FULL), concurrencies=(2,), trials=1, seconds=0.01)

CORE = Server(System.CORE, 1)

pytestmark = pytest.mark.size("all")


@pytest.fixture(autouse=True)
def without_triton(monkeypatch):
    """The serving core in the place of every server; what differs is what a test makes differ."""
    started = Servers.port
    monkeypatch.setattr(Servers, "port", lambda self, _server: started(self, CORE))


def test_everything_is_measured_after_the_answers_were_compared(tmp_path):
    said: list[str] = []
    found = measure(DESIGN, tmp_path, tmp_path, said.append)
    assert [trial.cell for trial in found.trials] == DESIGN.rounds()[0]
    # The text of transformers comes first, so that all others are compared with it.
    assert said[:2] == ["starting serving-core-1", "answers compared  triton-generate-1"]
    timed = sum(count for trial in found.trials for _, _, count in trial.result.answers)
    assert found.answers == len(SERVERS) * len(QUERIES) + timed


def test_a_server_with_another_text_ends_the_benchmark(tmp_path, monkeypatch):
    read = session.read_answer
    answered = 0

    def read_one_otherwise(content):
        nonlocal answered
        answered += 1
        return read(content) + ("x" if answered == len(QUERIES) + 1 else "")

    monkeypatch.setattr(session, "read_answer", read_one_otherwise)
    with pytest.raises(BenchmarkError, match="they do not compute the same model"):
        measure(DESIGN, tmp_path, tmp_path, lambda _text: None)
