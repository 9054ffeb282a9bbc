"""The Neuron container's benchmark: from trials to figures, verdicts and a page."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from benchmarks.driver import CLOSED_LOOP
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.machine import Machine
from benchmarks.neuron.design import BERT_BASE, FULL, MIXED, Cell, Server, System, full_design
from benchmarks.neuron.report import PADDING, as_json, as_markdown
from benchmarks.neuron.session import ModelSession
from benchmarks.neuron.summary import summarize
from benchmarks.report import Context
from benchmarks.trials import Trial

DESIGN = replace(full_design(trials=3, stated_trials=1, seed=1), models=(BERT_BASE,))
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 11, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"nginx": "1.22.1"}),
    command="python -m benchmarks.neuron",
)
DRIVER = {1: LoadResult(((0.0002, 0.0002),), (0.0005,), ((0, "{}", 4),), 0.0004, 0.001)}


def load(clients: int, seconds: float) -> LoadResult:
    return LoadResult(((seconds,),) * clients, (seconds,) * clients, (), 0.0, seconds)


def session(faster=(3.0, 3.0, 3.0), *, batch_1=1.5):
    """Slipway is so many times as fast as the naive server in each round; less in batches of 1."""
    trials = []
    for number, cells in enumerate(DESIGN.rounds(BERT_BASE), start=1):
        for cell in cells:
            seconds = 0.25 * cell.concurrency / cell.server.workers
            if cell.server.system is System.SLIPWAY:
                seconds /= faster[number - 1] if cell.server.batch_size == 6 else batch_1
                # A quarter of the ratio is padding that is not computed.
                seconds *= 1.25 if cell.workload == FULL else 1
            trials.append(Trial(cell, number, load(cell.concurrency, seconds)))
    tokens = {MIXED: (20, 33, 128), FULL: (126, 128)}
    return ModelSession(BERT_BASE, tokens, tuple(trials), 1234)


def goals(**given):
    [model] = summarize(DESIGN, [session(**given)])
    return {
        (found.goal.cell.server.workers, found.goal.cell.server.batch_size): found
        for found in model.goals
    }


def test_ratios_compare_servers_with_as_many_workers():
    found = goals()
    assert list(found) == [(1, 1), (1, 6), (2, 1), (2, 6)]
    assert found[1, 6].throughput.value == pytest.approx(3.0)
    assert found[2, 1].throughput.value == pytest.approx(1.5)
    assert found[2, 6].p95.value == pytest.approx(1 / 3)
    assert found[2, 6].without_padding.value == pytest.approx(2.4)
    assert found[2, 6].padding_factor == pytest.approx(1.25)
    assert found[2, 1].throughput_verdict is Verdict.MISSED
    assert found[2, 1].p95_verdict is Verdict.MET


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
    found = goals(faster=faster)[2, 6]
    assert (found.throughput_verdict, found.p95_verdict) == (throughput, p95)
    assert goals(faster=faster)[2, 6] == found


def page(**given) -> str:
    return as_markdown(DESIGN, summarize(DESIGN, [session(**given)]), DRIVER, CONTEXT)


def test_the_page_begins_with_the_goals():
    assert page().startswith(
        "# The Neuron container's serving path on the CPU, against a naive TorchScript server\n\n"
        "No Neuron device took part. The page compares the servers around the model, on the CPU."
        "\n\n"
        "**6 of 8 goals met.** The others: 2 not met.\n\n"
        "![Ratios to the naive server with their intervals, beside the goals]"
        "(../../docs/pictures/benchmark-neuron-goals.svg)\n\n"
        "| 16 clients, against the naive server | at least | sentences/s |  | p95: at most 1 "
        "|  | sentences/s, nothing to pad | padding saved |\n"
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        "| BERT-base, batch 1, 1 worker | 2 | 1.50 (1.50 to 1.50) | not met | "
        "0.67 (0.67 to 0.67) | met | 1.20 (1.20 to 1.20) | 1.25 x |\n"
    )
    assert "Intervals: percentile bootstrap of the medians, 95 %, over 3 trials each." in page()
    assert "**8 of 8 goals met.**\n" in page(batch_1=2.0)


def test_every_cell_has_a_row_with_its_ratio():
    text = page()
    assert (
        "| 16 | Slipway, batch 6 | 2 | 24.0 | 3.00 x | 667 | 667 |\n"
        "| 16 | one-by-one TorchScript | 2 | 8.00 |  | 2,000 | 2,000 |\n"
    ) in text
    assert (
        "## BERT-base: the same questions, with contexts filled up to 128 tokens\n\n2 questions "
        "with their contexts, 126 to 128 tokens, 127 on average: 0 of up to 32, 0 of up to 64, 2 "
        "of up to 128.\n"
    ) in text
    assert "1,234 answers, including all timed answers, were compared with the first" in text
    assert "A quick run" not in text
    quick = replace(DESIGN, is_quick=True)
    hasty = as_markdown(quick, summarize(quick, [session()]), DRIVER, CONTEXT)
    assert CLOSED_LOOP in hasty
    assert PADDING in hasty
    assert "A quick run" in hasty
    assert "benchmark-neuron.svg" in text
    assert ".svg" not in hasty


def test_the_circumstances_name_the_machine():
    assert (
        "- Run: `python -m benchmarks.neuron`, 2026-01-02 03:04 UTC, 7 minutes, no commit.\n"
        "- Machine: A processor, 2 cores, 25.3 GB, Linux x86_64.\n"
        "- Load average at the start: 0.1.\n"
        "- Versions: `nginx 1.22.1`.\n"
        "- Every server divides these cores among its workers.\n"
    ) in page()


def test_the_json_has_every_trial():
    made = as_json(DESIGN, summarize(DESIGN, [session()]), DRIVER, CONTEXT)
    document = json.loads(json.dumps(made))
    [model] = document["models"]
    cell = Cell(BERT_BASE, MIXED, Server(System.SLIPWAY, 2, 6), 16)
    [found] = [
        each
        for each in model["cells"]
        if (each["workload"], each["system"], each["workers"], each["batch_size"])
        == (cell.workload.name, cell.server.system, 2, 6)
        and each["concurrency"] == 16
    ]
    assert [trial["sentences_per_second"] for trial in found["trials"]] == [24.0] * 3
    assert found["p95_milliseconds"] == pytest.approx(666.667)
    orders = sorted(trial["order"] for each in model["cells"] for trial in each["trials"])
    assert orders == list(range(1, len(orders) + 1))
    assert len(document["goals"]) == 4
    assert [goal["padding_factor"] for goal in document["goals"]] == [1.25] * 4
