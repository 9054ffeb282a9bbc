"""The LMI benchmark: from trials to ratios, and what the page and the document say of them."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from benchmarks.driver import CLOSED_LOOP
from benchmarks.estimates import Spread
from benchmarks.execution import Timing
from benchmarks.lmi.design import TRANSFERS, Content, Part, System, Transfer, Way, full_design
from benchmarks.lmi.report import as_json, as_markdown
from benchmarks.lmi.servers import Start
from benchmarks.lmi.serving import Agreement, Life, ServingSession
from benchmarks.lmi.summary import Ratio, summarize
from benchmarks.lmi.weights import WeightsSession
from benchmarks.load import LoadResult
from benchmarks.machine import Machine
from benchmarks.report import Context
from benchmarks.trials import Trial

DESIGN = full_design(parts=tuple(Part), trials=3, transfer_trials=3, cores=2, seed=1)
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 11, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"s5cmd": "v2.3.0"}),
    command="python -m benchmarks.lmi",
)
# Of a request, alone: what a batch saves is that eight take twice as long as one.
REQUEST_SECONDS = {
    System.SLIPWAY: 0.02, System.SLIPWAY_SINGLE: 0.02, System.DJL_GRAPH: 0.03,
    System.DJL_GRAPH_SINGLE: 0.025, System.DJL_TRANSFORMERS: 0.1,
    System.DJL_TRANSFORMERS_BATCHES: 0.1,
}  # fmt: skip
READY_SECONDS = {system: 6.0 if system.is_djl else 1.5 for system in System}
TRANSFER_SECONDS = {Way.SYNC: 2.0, Way.COPY: 2.2, Way.STREAMED: 6.0, Way.STORED: 9.0}
# How much slower the machine is in each round.
SLOWER = (1.0, 1.1, 1.4)


def load(system: System, clients: int, slower: float) -> LoadResult:
    together = clients if not system.takes_batches else 1 + (clients > 1)
    seconds = REQUEST_SECONDS[system] * together * slower
    answers = ((0, "{}", 10 * clients),)
    return LoadResult(
        ((seconds,) * 10,) * clients, (seconds * 10,) * clients, answers, 0.0, seconds * 10
    )


def serving_session() -> ServingSession:
    trials = [
        Trial(
            system,
            number,
            Life(
                Start(READY_SECONDS[system] * slower, 7.0),
                (9.0, 10.0),
                {clients: load(system, clients, slower) for clients in (8, 1)},
            ),
        )
        for number, slower in enumerate(SLOWER, start=1)
        for system in DESIGN.serving_rounds()[number - 1]
    ]
    return ServingSession(tuple(trials), Agreement(1234, 1233))


def weights_session(*, sync_seconds=(2.0, 2.0, 2.0)) -> WeightsSession:
    trials = [
        Trial(transfer, number, Timing(seconds(transfer, number, sync_seconds), 3.0))
        for number in (1, 2, 3)
        for transfer in DESIGN.transfer_rounds()[number - 1]
    ]
    return WeightsSession(
        tuple(trials), {1: 1.5e9, 8: 2.25e9}, 1.1e9, 2_000_000_000,
        {Content.RANDOM: 2_000_600_000, Content.FLOAT32: 1_852_000_000},
    )  # fmt: skip


def seconds(transfer: Transfer, number: int, sync_seconds: tuple[float, ...]) -> float:
    if transfer.way is Way.SYNC:
        return sync_seconds[number - 1]
    return TRANSFER_SECONDS[transfer.way] * (2 if transfer.content is Content.FLOAT32 else 1)


def test_servers_are_compared_round_by_round():
    summary = summarize(DESIGN, serving_session(), None).serving
    assert summary is not None
    single, batches, own_batches, whole = summary.comparisons
    # Both sides of a round had the same machine: its speed is not in the range.
    assert single.ready.value == pytest.approx(4.0)
    assert single.throughputs[1].value == pytest.approx(1.25)
    assert batches.throughputs[8].value == pytest.approx(1.5)
    assert own_batches.throughputs[8].value == pytest.approx(5.0)
    assert whole.throughputs[8].value == pytest.approx(20.0)
    for ratio in (single.ready, single.throughputs[1], whole.throughputs[8]):
        assert ratio.low == pytest.approx(ratio.value)
        assert ratio.high == pytest.approx(ratio.value)


def test_a_servers_times_have_their_range():
    summary = summarize(DESIGN, serving_session(), None).serving
    assert summary is not None
    found = summary.systems[System.DJL_GRAPH]
    assert found.ready_seconds == Spread(pytest.approx(6.6), pytest.approx(6.0), pytest.approx(8.4))
    alone = found.loads[1]
    assert alone.latencies.count == 30
    assert alone.requests_per_second.median == pytest.approx(1 / 0.033)
    assert alone.latencies.p50 == pytest.approx(0.033)
    assert alone.latencies.p95 == pytest.approx(0.042)
    assert alone.latencies.longest == pytest.approx(0.042)


def test_throughput_is_what_was_answered_also_where_clients_wait_for_others():
    session = serving_session()
    # Of two clients the second waits 4 s for its first answer, until the first has ended.
    waiting = LoadResult(((1.0,) * 4, (5.0, 1.0, 1.0, 1.0)), (4.0, 8.0), ((0, "{}", 8),), 0.0, 8.0)
    trials = [
        replace(trial, result=replace(trial.result, loads={**trial.result.loads, 8: waiting}))
        if trial.cell is System.DJL_GRAPH_SINGLE
        else trial
        for trial in session.trials
    ]
    summary = summarize(DESIGN, replace(session, trials=tuple(trials)), None)
    assert summary.serving is not None
    found = summary.serving.systems[System.DJL_GRAPH_SINGLE].loads[8]
    assert found.requests_per_second == Spread(1.0, 1.0, 1.0)
    assert (found.latencies.p50, found.latencies.longest) == (1.0, 5.0)
    assert summary.serving.comparisons[0].throughputs[8].value == pytest.approx(1 / 0.022)
    page = as_markdown(DESIGN, summary, CONTEXT)
    assert CLOSED_LOOP in page
    assert (
        "| 8 | DJL Serving, same graph, one at a time | 1.0 | 1000.0 | 5000.0 | 5,000 |"
    ) in page.splitlines()


def test_a_transfers_ratio_is_of_medians_and_its_range_of_rounds():
    summary = summarize(DESIGN, None, weights_session(sync_seconds=(1.0, 2.0, 3.0))).weights
    assert summary is not None
    streamed = summary.transfers[Transfer(Way.STREAMED, Content.RANDOM)]
    assert streamed.ratio == Ratio(3.0, 2.0, 6.0)
    assert streamed.seconds == Spread(6.0, 6.0, 6.0)
    assert set(summary.transfers) == set(TRANSFERS)


def page(design=DESIGN, *, serving=True, weights=True) -> str:
    summary = summarize(
        design, serving_session() if serving else None, weights_session() if weights else None
    )
    return as_markdown(design, summary, CONTEXT)


def test_the_page_states_every_figure_and_has_a_plot_of_the_ranges():
    lines = page().splitlines()
    assert lines[0] == "# LMI: DJL Serving beside Slipway's core, and a prefix beside a tar.gz"
    assert (
        "| the same graph, in batches | 4.00 x (4.00 to 4.00) | 1.50 x (1.50 to 1.50) "
        "| 1.50 x (1.50 to 1.50) |"
    ) in lines
    assert "| DJL Serving, its own handler, PyTorch | 6.60 | 7.00 |" in lines
    assert "| 8 | Slipway's core, shared batches | 181.8 | 44.0 | 56.0 | 56 |" in lines
    assert (
        "| the prefix, `s5cmd sync` as the LMI images call it | any | 2.00 | 1.00 |  | 3.0 |"
    ) in lines
    assert (
        "| model.tar.gz, one GET, extracted while it arrives | normal float32 values | 12.00 "
        "| 0.17 | 6.00 x (6.00 to 6.00) | 3.0 |"
    ) in lines
    for name in ("benchmark-lmi", "benchmark-weights"):
        assert sum(f"(../../docs/pictures/{name}.svg)" in line for line in lines) == 1
    assert ".svg" not in page(replace(DESIGN, is_quick=True))


def test_the_page_says_what_was_checked_and_what_it_does_not_say():
    text = page()
    assert "1,233 of 1,234 answers were that text" in text
    assert "- *Requests/s*: all answers divided by the time from the first request to" in text
    assert "DJL Serving waits up to 10 ms for more requests (`max_batch_delay`), also with" in text
    assert "- Warm-up: rounds of 3 s with 8 clients, at most " in text
    assert "ratios of 3 rounds, which covers the true median with 75%." in text
    assert "1.50 GB/s over 1 connection, 2.25 GB/s over 8 connections" in text
    assert "100.0% of the size for random bytes and 92.6% of the size for normal float32" in text
    assert text.count("**What it does not say**\n\n- Nothing about") == 2
    assert "Nothing about a GPU, vLLM" in text
    assert "Nothing waits for the disk" in text
    assert "- Run: `python -m benchmarks.lmi`, 2026-01-02 03:04 UTC, 7 minutes, no commit." in text
    assert "s5cmd v2.3.0" in text


def test_a_part_that_was_not_measured_is_left_out():
    assert "GB of weights" not in page(weights=False)
    assert "The sample model" not in page(serving=False)
    assert "A quick run" not in page()
    assert "A quick run, with few requests" in page(replace(DESIGN, is_quick=True))


def test_the_document_has_every_trial():
    summary = summarize(DESIGN, serving_session(), weights_session())
    document = json.loads(json.dumps(as_json(DESIGN, summary, CONTEXT)))
    assert document["benchmark"] == "lmi"
    assert document["design"]["block_bytes"] == DESIGN.block_bytes
    trials = document["serving"]["trials"]
    assert [trial["order"] for trial in trials] == list(range(1, 19))
    assert [each["clients"] for each in trials[0]["requests_per_second"]] == [1, 8]
    assert trials[0]["warm_up_requests_per_second"] == [9.0, 10.0]
    assert {trial["ready_seconds"] for trial in trials} == {1.5, 1.65, 2.1, 6.0, 6.6, 8.4}
    assert len(document["weights"]["trials"]) == 18
    sync, copy, *_ = document["weights"]["transfers"]
    assert sync["times_of_baseline"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert copy["way"] == "s5cmd-copy"
    assert copy["times_of_baseline"]["value"] == 1.1
    assert document["weights"]["archive_bytes"]["float32"] == 1_852_000_000


def test_the_document_of_one_part_says_so():
    summary = summarize(DESIGN, serving_session(), None)
    document = as_json(DESIGN, summary, CONTEXT)
    assert document["weights"] is None
    assert document["serving"]["agreement"] == {"answers": 1234, "same": 1233}
