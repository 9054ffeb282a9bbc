"""The benchmark of T5 on Triton: what is measured, the figures, and the page."""

import json
from datetime import UTC, datetime
from itertools import product

import pytest
import yaml

from benchmarks.driver import CLOSED_LOOP
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.machine import Machine
from benchmarks.program import ROOT
from benchmarks.report import Context
from benchmarks.trials import Trial
from benchmarks.triton import __main__ as program
from benchmarks.triton.design import (
    COPIES,
    GOAL_CLIENTS,
    GOALS,
    MAX_BATCH_SIZE,
    MAX_TOKENS,
    SERVERS,
    Cell,
    Server,
    System,
    full_design,
    quick,
)
from benchmarks.triton.queries import QUERIES, answer, body, read_answer, read_query, token_count
from benchmarks.triton.report import as_json, as_markdown
from benchmarks.triton.servers import container_variables, find_triton
from benchmarks.triton.session import Session
from benchmarks.triton.summary import summarize

DESIGN = full_design(trials=3, stated_trials=1, seed=1)
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 11, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"Triton": "2.51.0"}),
    command="python -m benchmarks.triton",
)
DRIVER = {1: LoadResult(((0.0002, 0.0002),), (0.0005,), ((0, "{}", 4),), 0.0004, 0.001)}


def session(faster=(3.0, 3.0, 3.0)):
    """Slipway on Triton is so many times as fast as every other server in each round."""
    trials = []
    for number, cells in enumerate(DESIGN.rounds(), start=1):
        for cell in cells:
            seconds = 0.01 * cell.clients
            if cell.server.system is System.TRITON:
                seconds /= faster[number - 1]
            times = ((seconds,),) * cell.clients
            load = LoadResult(times, (seconds,) * cell.clients, (), 0.0, seconds)
            trials.append(Trial(cell, number, load))
    return Session(tuple(trials), 1234)


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
    found = summarize(DESIGN, session(faster)).goals
    assert [(each.copies, each.goal) for each in found] == [*product(COPIES, GOALS)]
    goals = {each.goal.baseline: each for each in found}
    assert goals[System.UNBATCHED].throughput_verdict is unbatched
    assert goals[System.GENERATE].throughput_verdict is generate
    assert {each.p99_verdict for each in goals.values()} == {p99}
    assert goals[System.GENERATE].p99.value == pytest.approx(1 / sorted(faster)[1])


def test_the_page_begins_with_the_goals_and_has_every_cell():
    page = as_markdown(DESIGN, summarize(DESIGN, session()), DRIVER, CONTEXT)
    assert CLOSED_LOOP in page
    assert page.startswith(
        "# T5 spelling correction on Triton, on the CPU\n\nNo GPU took part. The page compares "
        "ways to serve the same small T5 on the CPU of one machine.\n\n"
        "**6 of 8 goals met.** The others: 2 not met.\n\n"
    )
    assert "| Without batches, 1 copy | 3.00 (3.00 to 3.00) | 2.5 | met | 0.33 (0.33" in page
    assert "| 32 | Slipway on Triton | 2 | 300 | 107 | 107 |" in page
    assert "1,234 answers" in page
    assert "![Requests per second" in page
    short = as_markdown(quick(DESIGN), summarize(DESIGN, session()), DRIVER, CONTEXT)
    assert "A quick run" in short
    assert "![" not in short


def test_the_json_has_every_trial():
    document = as_json(DESIGN, summarize(DESIGN, session()), DRIVER, CONTEXT)
    json.dumps(document)
    counts = [len(cell["trials"]) for cell in document["cells"]]
    assert sum(counts) == sum(len(cells) for cells in DESIGN.rounds())
    assert [goal["least_throughput_ratio"] for goal in document["goals"]] == [2.5, 5.34] * 2


def test_a_missing_server_is_named_with_the_remedy_before_anything_is_measured(
    monkeypatch, tmp_path, capsys
):
    with pytest.raises(BenchmarkError, match="Run `make triton`"):
        find_triton({"TRITON_HOME": str(tmp_path)})
    monkeypatch.setenv("TRITON_HOME", str(tmp_path))
    monkeypatch.setattr(program, "measure_driver", lambda *_: pytest.fail("measured"))
    assert program.main(["--output", str(tmp_path)]) == 1
    assert "Run `make triton`" in capsys.readouterr().err
