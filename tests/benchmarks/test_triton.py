"""The benchmark of T5 on Triton: what is measured, the verdicts, and real servers."""

from dataclasses import replace

import pytest
import yaml

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.program import ROOT
from benchmarks.servers import start_container
from benchmarks.trials import Trial
from benchmarks.triton import __main__ as command
from benchmarks.triton.__main__ import measure
from benchmarks.triton.design import (
    COPIES,
    GOAL_CLIENTS,
    MAX_BATCH_SIZE,
    MAX_TOKENS,
    QUERIES,
    SERVERS,
    Cell,
    Design,
    Server,
    System,
    answer,
    body,
    quick,
    read_answer,
    read_query,
    token_count,
)
from benchmarks.triton.report import result
from benchmarks.triton.servers import container_variables
from tests.benchmarks.results import committed, document_of, shape

DESIGN = Design(trials=3)


def document(faster=(3.0, 3.0, 3.0)):
    """The document of rounds in which Slipway on Triton is so many times as fast as any other."""
    trials = []
    for number, cells in enumerate(DESIGN.rounds(), start=1):
        for cell in cells:
            is_ours = cell.server.system is System.TRITON
            seconds = 0.01 * cell.clients / (faster[number - 1] if is_ours else 1)
            times = ((seconds,),) * cell.clients
            load = LoadResult(times, (seconds,) * cell.clients, (), 0.0, seconds)
            trials.append(Trial(cell, number, load))
    return document_of(result(DESIGN, trials, 1234))


def test_every_server_is_measured_with_every_number_of_clients():
    cells = DESIGN.cells
    assert len(cells) == len(set(cells)) == 5 * len(SERVERS)
    assert {cell.clients for cell in cells} == {1, 4, 8, 16, 32}
    rounds = DESIGN.rounds()
    assert set(rounds[0]) == set(cells)
    about = {Cell(server, GOAL_CLIENTS) for server in SERVERS if server.system != System.CORE}
    assert set(rounds[1]) == set(rounds[2]) == about


def test_the_limits_are_of_the_shipped_config():
    config = yaml.safe_load((ROOT / "model_configs/t5-spelling.yaml").read_text("utf-8"))
    serving = config["serving"]
    assert serving["max_batch_size"] == MAX_BATCH_SIZE
    assert serving["instance_group_count"] in COPIES
    assert serving["max_input_tokens"] == serving["max_new_tokens"] == MAX_TOKENS


def test_the_servers_differ_in_batches_and_copies():
    found = {server: container_variables(server) for server in SERVERS}
    sizes = {server: each["SLIPWAY_MAX_BATCH_SIZE"] for server, each in found.items()}
    unbatched = [Server(System.UNBATCHED, copies) for copies in COPIES]
    assert [server for server, size in sizes.items() if size == "1"] == unbatched
    assert found[Server(System.GENERATE, 2)]["SLIPWAY_INSTANCE_COUNT"] == "2"
    assert "SLIPWAY_INSTANCE_COUNT" not in found[Server(System.CORE, 1)]


def test_queries_are_different_and_fit_the_model():
    assert len(set(QUERIES)) == len(QUERIES) == 3 * GOAL_CLIENTS
    assert max(map(token_count, QUERIES)) <= MAX_TOKENS
    for query in QUERIES:
        assert read_query(body(query).encode()) == query


@pytest.mark.parametrize(
    "content",
    ["", "{}", "[]", '{"outputs": []}', '{"outputs": [{"data": ["a", "b"]}]}', '{"error": "x"}',
     '{"outputs": [{"data": [1]}]}'],
)  # fmt: skip
def test_what_is_no_answer_ends_the_benchmark(content):
    assert read_answer(answer("instance")) == "instance"
    with pytest.raises(BenchmarkError, match="not an answer to a query"):
        read_answer(content)


@pytest.mark.parametrize(
    ("faster", "unbatched", "generate", "p99"),
    [
        ((6.0, 6.0, 6.0), Verdict.MET, Verdict.MET, Verdict.MET),
        ((3.0, 3.0, 2.0), Verdict.MET_BY_MEDIANS, Verdict.MISSED, Verdict.MET),
        ((0.9, 0.9, 0.9), Verdict.MISSED, Verdict.MISSED, Verdict.MISSED),
    ],
)
def test_a_verdict_compares_with_16_clients(faster, unbatched, generate, p99):
    goals = document(faster)["goals"]
    throughputs, waits = goals[::2], goals[1::2]
    assert [each["verdict"] for each in throughputs] == [unbatched, generate] * len(COPIES)
    assert throughputs[1]["goal"] == "requests/s of 1 copy, against `generate` per request"
    assert {each["verdict"] for each in waits} == {p99}
    assert waits[0]["found"]["value"] == pytest.approx(1 / sorted(faster)[1], abs=0.001)


def test_the_document_has_every_trial_in_the_committed_form():
    found, kept = document(), committed("triton")
    for name in ("design", "goals", "cells"):
        assert shape(found[name]) == shape(kept[name])
    counts = [len(cell["trials"]) for cell in found["cells"]]
    assert sum(counts) == sum(len(cells) for cells in DESIGN.rounds())
    assert found["tokens"] == kept["tokens"]


@pytest.fixture
def without_triton(monkeypatch):
    """The serving core in the place of every server; what differs is what a test makes differ."""

    def start(server, folder, _triton):
        settings = container_variables(Server(System.CORE, 1))
        program = ("-m", "benchmarks.triton.serving_core")
        return start_container(program, folder / f"{server}.log", settings)

    monkeypatch.setattr(command, "start_server", start)
    monkeypatch.setattr(command, "SERVERS", SERVERS[1:3])


HASTY = replace(quick(DESIGN), concurrencies=(2,), trials=1, seconds=0.01)


@pytest.mark.size("all")
@pytest.mark.usefixtures("without_triton")
def test_everything_is_measured_after_the_answers_were_compared(tmp_path, monkeypatch):
    monkeypatch.setattr("benchmarks.triton.design.SERVERS", SERVERS[1:3])
    said = []
    # The text of transformers comes first, so that all others are compared with it.
    trials, answers = measure(HASTY, tmp_path, tmp_path, said.append)
    assert [trial.cell for trial in trials] == HASTY.rounds()[0]
    assert said[:2] == ["starting triton-generate-1", "answers compared  triton-generate-1"]
    timed = sum(count for trial in trials for _, _, count in trial.result.answers)
    assert answers == 2 * len(QUERIES) + timed
