"""The LMI benchmark's servers: Slipway's for real, DJL Serving's where it is installed."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.lmi import serving
from benchmarks.lmi.design import BODIES, Design, System, completion, quick
from benchmarks.lmi.servers import DjlServing, Server, find_djl_serving
from benchmarks.lmi.serving import measure_serving

DESIGN = replace(quick(Design()), seconds=0.05)
NO_DJL = DjlServing(Path("/nowhere"), "0.36.0", "/nowhere/python", {}, "17")
# Of samples/gpt2-autocomplete/README.md.
COMPLETIONS = {
    0: " name for the Amazon S3 bucket.",
    1: " Amazon Web Services account that owns the resource.",
    2: " page.",
}


def nothing_said(_text):
    pass


class OnlySlipway(Server):
    """Slipway's server in the place of every other."""

    def __init__(self, system, *given, **named):
        super().__init__(System.SLIPWAY_SINGLE, *given, **named)  # type: ignore[arg-type]


def test_slipways_server_is_timed_to_its_first_ping_and_answer(tmp_path):
    server = Server(System.SLIPWAY, tmp_path, NO_DJL, threads=1, max_batch_size=8)
    try:
        # An interpreter starts, and imports ONNX Runtime: no clock that is read too late sees it.
        assert 0.1 < server.start.ready_seconds < server.start.answered_seconds
        for index, expected in COMPLETIONS.items():
            assert completion(index, server.ask(BODIES[index])) == expected
        with pytest.raises(BenchmarkError, match=r"a request was answered with 400: .*max_new_tok"):
            server.ask('{"inputs": "a", "parameters": {"max_new_tokens": 0}}')
    finally:
        server.stop()
    with pytest.raises(BenchmarkError, match="a request failed: ConnectionRefusedError"):
        server.ask(BODIES[0])


def test_a_server_that_does_not_start_is_reported_with_its_last_words(tmp_path):
    with pytest.raises(BenchmarkError, match="DJL_SERVING_HOME is /nowhere, which has no program"):
        Server(System.DJL_GRAPH, tmp_path, NO_DJL, threads=1, max_batch_size=8)


@pytest.mark.size("all")
def test_every_server_is_measured_with_every_number_of_clients(tmp_path, monkeypatch):
    monkeypatch.setattr(serving, "Server", OnlySlipway)
    order = [System.DJL_GRAPH, System.SLIPWAY]
    monkeypatch.setattr(Design, "serving_rounds", lambda _design: [order])
    said = []
    found = measure_serving(DESIGN, NO_DJL, tmp_path, said.append)
    assert [trial.cell for trial in found.trials] == order
    assert len(said) == len(order)
    for trial in found.trials:
        assert {
            clients: len(load.spans_seconds) for clients, load in trial.result.loads.items()
        } == {
            1: 1,
            8: 8,
        }
        assert all(load.requests_per_second > 0 for load in trial.result.loads.values())
    assert found.answers == found.same > 2 * len(order)


@pytest.mark.parametrize(
    ("rates", "rounds"),
    [((10, 12, 12.1, 20), 3), ((10, 8, 20), 2), ((10, 11, 12, 13, 14), 4)],
)
def test_a_server_is_warm_when_it_gets_no_faster(monkeypatch, rates, rounds):
    left = list(rates)

    class Load:
        def __init__(self):
            self.answers_per_second = left.pop(0)

    monkeypatch.setattr(serving, "_load", lambda *_: Load())
    design = replace(DESIGN, most_warm_ups=4)
    assert serving._warm_up(None, System.DJL_GRAPH, design) == rates[:rounds]


def test_servers_that_answer_differently_end_the_benchmark(tmp_path, monkeypatch):
    class Another(OnlySlipway):
        def ask(self, body):
            answer = super().ask(body)
            return answer.replace("page", "book") if self.is_second else answer

        def __init__(self, system, *given, **named):
            self.is_second = system == second
            super().__init__(system, *given, **named)

    [_, second, *_] = DESIGN.serving_rounds()[0]
    monkeypatch.setattr(serving, "Server", Another)
    with pytest.raises(BenchmarkError) as caught:
        measure_serving(DESIGN, NO_DJL, tmp_path, nothing_said)
    assert str(caught.value) == (
        f"{second} answers ' book.' to request 2, and the first server answers ' page.': they do "
        "not compute the same model"
    )


@pytest.fixture
def djl_serving():
    return find_djl_serving(os.environ)


@pytest.mark.djl_serving
@pytest.mark.torch
@pytest.mark.parametrize("system", [system for system in System if system.is_djl])
def test_djl_serving_gives_the_samples_answers(system, djl_serving, tmp_path):
    server = Server(system, tmp_path, djl_serving, threads=1, max_batch_size=8)
    try:
        assert 0.1 < server.start.ready_seconds < server.start.answered_seconds
        for index, expected in COMPLETIONS.items():
            assert completion(index, server.ask(BODIES[index])) == expected
    finally:
        server.stop()
