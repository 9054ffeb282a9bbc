"""The Neuron container's benchmark: what is measured, with which requests, and its options."""

import json
from dataclasses import replace

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.neuron import __main__ as program
from benchmarks.neuron.design import (
    BERT_BASE,
    FULL,
    MIXED,
    SAMPLE,
    Server,
    System,
    full_design,
    least_throughput_ratio,
    quick,
)
from benchmarks.neuron.models import SAMPLE_TOKENIZER
from benchmarks.neuron.servers import container_variables
from benchmarks.neuron.workloads import Answer, Request, make_requests, read_answer
from benchmarks.program import ROOT

WHOLE = full_design(trials=3, stated_trials=1, seed=1)
REQUEST = Request("Who?", "Ada wrote it.", 9)


def test_batches_of_1_and_6_and_1_and_2_workers_are_measured_beside_the_naive_server():
    servers = [(server.system, server.workers, server.batch_size) for server in MIXED.servers]
    assert servers == [
        (System.SLIPWAY, 1, 1),
        (System.SLIPWAY, 1, 6),
        (System.NAIVE, 1, 1),
        (System.SLIPWAY, 2, 1),
        (System.SLIPWAY, 2, 6),
        (System.NAIVE, 2, 1),
    ]
    cells = WHOLE.cells(BERT_BASE)
    assert [(cell.concurrency, cell.server) for cell in cells if cell.workload == MIXED] == [
        (clients, server) for clients in (1, 4, 16) for server in MIXED.servers
    ]
    assert WHOLE.cells(SAMPLE) == [replace(cell, model=SAMPLE) for cell in cells]


def test_every_goal_compares_equal_workers_at_16_clients():
    for model in WHOLE.models:
        goals = WHOLE.goals(model)
        found = [
            (each.cell.server.workers, each.cell.server.batch_size, each.baseline.server)
            for each in goals
        ]
        assert found == [
            (workers, size, Server(System.NAIVE, workers)) for workers in (1, 2) for size in (1, 6)
        ]
        for each in goals:
            assert each.cell.concurrency == each.baseline.concurrency == 16
            assert each.cell.workload == each.baseline.workload == MIXED


def test_what_a_goal_is_about_is_measured_more_often_in_shuffled_rounds():
    rounds = WHOLE.rounds(BERT_BASE)
    assert sorted(cell.key for cell in rounds[0]) == sorted(
        cell.key for cell in WHOLE.cells(BERT_BASE)
    )
    goals = WHOLE.goals(BERT_BASE)
    about = {each for goal in goals for each in (goal.cell, goal.baseline)}
    # The same without padding to save, which says where a ratio comes from.
    about |= {replace(each, workload=FULL) for each in about}
    assert [set(cells) for cells in rounds[1:]] == [about, about]
    assert rounds == WHOLE.rounds(BERT_BASE)
    assert rounds != replace(WHOLE, seed=2).rounds(BERT_BASE)


def test_a_quick_run_has_every_goal_and_every_way_to_make_a_model():
    hasty = quick(WHOLE)
    assert [bool(model.sample) for model in hasty.models] == [False, True]
    assert len(hasty.goals(hasty.models[0])) == len(WHOLE.goals(BERT_BASE))
    assert (hasty.is_quick, WHOLE.is_quick) == (True, False)


def test_the_goal_is_lower_for_the_samples_lone_sentences():
    goals = {
        (model.name, size): least_throughput_ratio(model, size)
        for model in (BERT_BASE, SAMPLE)
        for size in (1, 6)
    }
    assert goals == {
        ("bert-base", 1): 2.0, ("bert-base", 6): 2.0, ("bert-qa", 1): 1.6, ("bert-qa", 6): 2.0
    }  # fmt: skip


@pytest.mark.parametrize(("workload", "least"), [(MIXED, 20), (FULL, 125)])
def test_questions_are_of_one_window_and_the_same_for_a_seed(workload, least):
    requests = make_requests(workload, SAMPLE_TOKENIZER, 1)
    assert requests == make_requests(workload, SAMPLE_TOKENIZER, 1)
    assert requests != make_requests(workload, SAMPLE_TOKENIZER, 2)
    assert len(requests) == 48
    tokens = [request.tokens for request in requests]
    assert min(tokens) >= least
    assert max(tokens) <= 128
    document = json.loads(requests[0].body)
    assert document["inputs"] == {
        "question": requests[0].question,
        "context": requests[0].context,
    }


def test_an_answer_is_a_part_of_its_context():
    text = '{"score": 0.5, "start": 0, "end": 3, "answer": "Ada"}'
    assert read_answer(REQUEST, text) == Answer(0, 3, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        '{"score": 0.5, "start": 0, "end": 3, "answer": "wro"}',
        '{"score": 1.5, "start": 0, "end": 3, "answer": "Ada"}',
        '{"score": 0.5, "start": 0, "answer": "Ada"}',
        "[]",
        "<html>",
    ],
)
def test_what_is_no_answer_is_not_timed(text):
    with pytest.raises(BenchmarkError, match="not an answer of the container's form: "):
        read_answer(REQUEST, text)


@pytest.mark.parametrize(
    ("other", "agrees"),
    [
        (Answer(0, 3, 0.50001), True),
        (Answer(0, 3, 0.51), False),
        (Answer(0, 2, 0.5), False),
        (Answer(1, 3, 0.5), False),
    ],
)
def test_answers_agree_by_span_and_score(other, agrees):
    assert Answer(0, 3, 0.5).agrees_with(other) is agrees


def test_the_container_gets_workers_and_batch_as_an_endpoints_would(tmp_path):
    found = container_variables(tmp_path, Server(System.SLIPWAY, 2, 6))
    assert found["SLIPWAY_WORKERS"] == "2"
    assert found["SLIPWAY_MAX_BATCH_SIZE"] == "6"
    assert found["SM_MODEL_DIR"] == str(tmp_path)


def test_a_quick_run_never_writes_into_the_results(tmp_path):
    quick = ROOT / "build" / "benchmarks" / "quick"
    results = ROOT / "benchmarks" / "results"
    assert program.parse([]).output == results
    assert program.parse(["--quick"]).output == quick
    assert program.parse(["--quick", "--output", str(results / "../results")]).output == quick
    assert program.parse(["--quick", "--output", str(tmp_path)]).output == tmp_path


def test_a_missing_part_of_the_naive_server_ends_the_benchmark(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("benchmarks.baselines.stack.find_nginx", lambda: "/usr/sbin/nginx")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "flask" else name)
    assert program.main(["--quick", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "The benchmark ended early: flask is not installed: run `make bench-neuron`, or install "
        "requirements-bench.txt without its dependencies (`pip install --no-deps --requirement "
        "requirements-bench.txt`)\n"
    )
    assert list(tmp_path.iterdir()) == []
