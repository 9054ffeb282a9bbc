"""The Neuron container's benchmark: what is measured, the verdicts, and real servers."""

import json
from dataclasses import replace

import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.neuron import session
from benchmarks.neuron.design import (
    BERT_BASE,
    FULL,
    MIXED,
    SAMPLE,
    Design,
    Server,
    System,
    least_throughput_ratio,
    quick,
)
from benchmarks.neuron.models import SAMPLE_TOKENIZER
from benchmarks.neuron.report import result
from benchmarks.neuron.session import ModelSession, measure_model, start_server
from benchmarks.neuron.workloads import Answer, Request, make_requests, read_answer
from benchmarks.trials import Trial
from tests.benchmarks.results import committed, document_of, shape

WHOLE = Design(trials=3)
REQUEST = Request("Who?", "Ada wrote it.", 9)
OURS = Server(System.SLIPWAY, 1, 6)
WORKLOAD = replace(MIXED, workers=(1,), batch_sizes=(6,), concurrencies=(1, 3))
HASTY = replace(quick(WHOLE), models=(SAMPLE,), workloads=(WORKLOAD,), seconds=0.01)


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


def test_every_goal_compares_equal_workers_and_is_measured_more_often():
    goals = WHOLE.goals(BERT_BASE)
    assert [(each.server.workers, each.server.batch_size) for each in goals] == [
        (1, 1), (1, 6), (2, 1), (2, 6),
    ]  # fmt: skip
    assert {(each.workload, each.concurrency) for each in goals} == {(MIXED, 16)}
    baselines = [each.baseline for each in goals]
    assert [each.server for each in baselines] == [
        Server(System.NAIVE, each.server.workers) for each in goals
    ]
    about = {*goals, *baselines}
    # The same without padding to save, which says where a ratio comes from.
    about |= {replace(each, workload=FULL) for each in about}
    rounds = WHOLE.rounds(BERT_BASE)
    assert set(rounds[0]) == set(WHOLE.cells(BERT_BASE))
    assert [set(cells) for cells in rounds[1:]] == [about, about]


def test_a_quick_run_has_every_goal_and_every_way_to_make_a_model():
    hasty = quick(WHOLE)
    assert [bool(model.sample) for model in hasty.models] == [False, True]
    assert len(hasty.goals(hasty.models[0])) == len(WHOLE.goals(BERT_BASE))


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


def document(faster=(3.0, 3.0, 3.0)):
    """The document of rounds in which batches of 6 are so many times as fast as the naive server.

    Those of 1 are always 1.5 times as fast.
    """
    trials = []
    for number, cells in enumerate(WHOLE.rounds(BERT_BASE), start=1):
        for cell in cells:
            seconds = 0.25 * cell.concurrency / cell.server.workers
            if cell.server.system is System.SLIPWAY:
                seconds /= faster[number - 1] if cell.server.batch_size == 6 else 1.5
                # A quarter of the ratio is padding that is not computed.
                seconds *= 1.25 if cell.workload == FULL else 1
            times = ((seconds,),) * cell.concurrency
            load = LoadResult(times, (seconds,) * cell.concurrency, (), 0.0, seconds)
            trials.append(Trial(cell, number, load))
    tokens = {"mixed": [20, 33, 128], "full": [126, 128]}
    design = replace(WHOLE, models=(BERT_BASE,))
    return document_of(result(design, [ModelSession(BERT_BASE, tokens, tuple(trials), 1234)]))


def goal(document, workers, batch_size):
    [found] = [
        each
        for each in document["goals"]
        if (each["workers"], each["batch_size"]) == (workers, batch_size)
    ]
    return found


def test_ratios_compare_servers_with_as_many_workers():
    found = document()
    assert goal(found, 1, 6)["throughput_ratio"]["value"] == 3.0
    assert goal(found, 2, 1)["throughput_ratio"]["value"] == 1.5
    assert goal(found, 2, 1)["throughput_verdict"] == Verdict.MISSED
    assert goal(found, 2, 6)["p95_ratio"]["value"] == 0.333
    assert goal(found, 2, 6)["throughput_ratio_without_padding"]["value"] == 2.4
    assert goal(found, 2, 6)["padding_factor"] == 1.25


@pytest.mark.parametrize(
    ("faster", "throughput", "p95"),
    [
        ((3.0, 2.5, 2.1), Verdict.MET, Verdict.MET),
        ((3.0, 2.5, 0.9), Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS),
        ((0.9, 1.2, 1.1), Verdict.MISSED, Verdict.MET_BY_MEDIANS),
        ((0.9, 0.9, 3.0), Verdict.MISSED, Verdict.MISSED),
    ],
)
def test_a_verdict_says_how_sure_it_is(faster, throughput, p95):
    found = goal(document(faster), 2, 6)
    assert (found["throughput_verdict"], found["p95_verdict"]) == (throughput, p95)


def test_the_document_has_every_trial_in_the_committed_form():
    found, kept = document(), committed("neuron")
    for name in ("design", "goals", "models"):
        assert shape(found[name]) == shape(kept[name])
    [model] = found["models"]
    orders = sorted(trial["order"] for each in model["cells"] for trial in each["trials"])
    assert orders == list(range(1, len(orders) + 1))
    assert len(orders) == sum(len(cells) for cells in WHOLE.rounds(BERT_BASE))


@pytest.fixture
def committed_sample(monkeypatch):
    """The committed sample as the model directory, and Slipway's server in the naive one's place.

    It has no TorchScript, which takes PyTorch to make; what differs is what a test makes differ.
    """
    monkeypatch.setattr(session, "ensure_model", lambda *_: SAMPLE_TOKENIZER.parent)
    monkeypatch.setattr(
        session, "start_server", lambda _server, *folders: start_server(OURS, *folders)
    )


@pytest.mark.size("all")
@pytest.mark.usefixtures("committed_sample")
def test_everything_of_one_model_is_measured_after_the_answers_were_compared(tmp_path):
    said = []
    found = measure_model(HASTY, SAMPLE, tmp_path, models=tmp_path, say=said.append)
    rounds = [[cell.key for cell in cells] for cells in HASTY.rounds(SAMPLE)]
    assert [trial.cell.key for trial in found.trials] == [key for keys in rounds for key in keys]
    for trial in found.trials:
        assert len(trial.result.latencies_seconds) == trial.cell.concurrency
    assert said[:3] == [
        "starting slipway-batch-6-workers-1",
        "answers compared  bert-qa mixed slipway-batch-6-workers-1",
        "starting torchscript-batch-1-workers-1",
    ]
    timed = sum(count for trial in found.trials for _, _, count in trial.result.answers)
    assert found.answers == 2 * len(found.tokens["mixed"]) + timed
