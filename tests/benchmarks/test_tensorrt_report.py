"""The TensorRT container's benchmark: from trials to figures, verdicts and a page."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from benchmarks.baselines.stack import Layout
from benchmarks.driver import CLOSED_LOOP
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.machine import Machine
from benchmarks.report import Context
from benchmarks.tensorrt.calibration import Calibration, Measured
from benchmarks.tensorrt.design import GPT2_124M, SAMPLE, Cell, System, full_design
from benchmarks.tensorrt.overhead import Overhead
from benchmarks.tensorrt.report import as_json, as_markdown
from benchmarks.tensorrt.session import Agreement, ModelSession
from benchmarks.tensorrt.summary import summarize
from benchmarks.trials import Trial

DESIGN = full_design(
    trials=3, stated_trials=1, cores=2, max_batch_size=80, workers=None, longest_seconds=60, seed=1
)
WIDE, NARROW = Layout(1, 2), Layout(2, 1)
CALIBRATION = Calibration(WIDE, NARROW, (Measured(WIDE, 0.3, 0.31), Measured(NARROW, 0.2, 0.36)))
CONTEXT = Context(
    started_at=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ended_at=datetime(2026, 1, 2, 3, 24, 5, tzinfo=UTC),
    commit=None,
    machine=Machine("Linux x86_64", "A processor", 2, 25_300_000_000, 0.1, {"nginx": "1.22.1"}),
    command="python -m benchmarks.tensorrt",
)
DRIVER = {1: LoadResult(((0.0002, 0.0002),), (0.0005,), ((0, "{}", 4),), 0.0004, 0.001)}
UNCACHED_X8 = Cell(GPT2_124M, DESIGN.workloads[0], System.UNCACHED, 8)
# Seconds of one request, alone.
SECONDS = {System.SLIPWAY: 2.0, System.STATIC: 2.5, System.CACHED: 3.0, System.UNCACHED: 12.0}


def load(clients: int, seconds: float) -> LoadResult:
    return LoadResult(((seconds,),) * clients, (seconds,) * clients, (), 0.0, seconds)


def session(model=GPT2_124M, *, faster=(1.0, 1.0, 1.0), left_out=None, overhead=None):
    """Returns a session in which Slipway takes half as long per request with eight clients."""
    left_out = left_out or {}
    trials = []
    for number, cells in enumerate(DESIGN.rounds(model), start=1):
        for cell in cells:
            if cell in left_out:
                continue
            seconds = SECONDS[cell.system] * cell.concurrency
            if cell.system is System.SLIPWAY:
                seconds /= (4 if cell.concurrency >= 8 else 1) * faster[number - 1]
            trials.append(Trial(cell, number, load(cell.concurrency, seconds)))
    return ModelSession(model, CALIBRATION, tuple(trials), left_out, overhead, Agreement(800, 799))


def sessions(*, overhead_seconds=(0.001, 0.001, 0.001), **given):
    bare = (0.02,) * 3
    http = tuple(0.02 + seconds for seconds in overhead_seconds)
    return [session(**given), session(SAMPLE, overhead=Overhead(http, bare))]


@pytest.mark.parametrize(
    ("faster", "verdicts"),
    [
        # 12 s against 2 s, 3 s against 2 s, and a quarter of the time with eight clients.
        ((1.0, 1.0, 1.0), [Verdict.MET, Verdict.MET, Verdict.MET, Verdict.MET]),
        # 6 x and 1.5 x become 3 x and 0.75 x in one round of three.
        ((0.4, 1.0, 1.0), [Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS]),
        ((0.4, 0.4, 0.4), [Verdict.MISSED, Verdict.MISSED, Verdict.MET, Verdict.MET]),
    ],
)
def test_a_verdict_says_how_sure_it_is(faster, verdicts):
    goals = summarize(DESIGN, sessions(faster=faster)).goals
    assert [goal.verdict for goal in goals][: len(verdicts)] == verdicts
    assert summarize(DESIGN, sessions(faster=faster)).goals == goals


def test_ratios_compare_throughputs():
    uncached, cached, batch, mixed = summarize(DESIGN, sessions()).goals
    assert [goal.ratio.value for goal in (uncached, cached, batch, mixed) if goal.ratio] == [
        pytest.approx(6.0),
        pytest.approx(1.5),
        pytest.approx(4.0),
        pytest.approx(4.0),
    ]


def test_what_was_left_out_has_no_verdict():
    left_out = {Cell(GPT2_124M, DESIGN.workloads[0], System.UNCACHED, 1): 70.0}
    goal = summarize(DESIGN, sessions(left_out=left_out)).goals[0]
    assert (goal.ratio, goal.verdict) == (None, Verdict.NOT_MEASURED)


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((0.001, 0.001, 0.0014), Verdict.MET),
        ((0.001, 0.001, 0.0016), Verdict.MET_BY_MEDIANS),
        ((0.001, 0.0015, 0.0016), Verdict.MISSED),
    ],
)
def test_the_overhead_is_the_difference_of_two_medians(seconds, verdict):
    overhead = summarize(DESIGN, sessions(overhead_seconds=seconds)).overhead
    assert overhead.added.value == pytest.approx(sorted(seconds)[1])
    assert overhead.verdict is verdict


def page(**given) -> str:
    return as_markdown(DESIGN, summarize(DESIGN, sessions(**given)), DRIVER, CONTEXT)


def test_the_page_begins_with_the_goals():
    assert page().startswith(
        "# The TensorRT container's serving path on the CPU, against the published layout\n\n"
        "**5 of 5 goals met.**\n\n"
        "| goal |  | found | 95 % interval |  |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| GPT-2 124M: throughput against the published layout, concurrency 1 | at least 2.9 | "
        "6.00 | 6.00 to 6.00 | met |\n"
    )
    assert (
        "| p50 of a request minus its decode loop, concurrency 1 | under 1.5 ms | 1.00 ms | "
        "1.00 to 1.00 | met |\n"
    ) in page()
    missed = page(faster=(0.4, 0.4, 0.4))
    assert "**3 of 5 goals met.**" in missed
    assert "| at least 2.9 | 2.40 | 2.40 to 2.40 | not met |" in missed


def test_a_quick_page_says_that_it_proves_nothing():
    quick = replace(DESIGN, is_quick=True)
    text = as_markdown(quick, summarize(quick, sessions()), DRIVER, CONTEXT)
    assert CLOSED_LOOP in text
    assert "A quick run, with small models and a few requests: it shows that everything" in text
    assert "A quick run" not in page()


def test_every_server_has_its_row_and_ours_the_ratios():
    text = page(left_out={UNCACHED_X8: 96.4})
    assert "\n### GPT-2 124M: 10 texts a request, 12 + 30 tokens\n" in text
    assert "\n### The sample: 1 text a request, 12 + 4 to 40 tokens\n" in text
    assert "of the cached layout's | of the published layout's | p50 ms | p99 ms |" in text
    assert "| 1 | Slipway | 0.500 | 1.50 x | 6.00 x | 2,000 | 2,000 |\n" in text
    assert "| 1 | published layout, with a cache | 0.333 |  |  | 3,000 | 3,000 |\n" in text
    empty = " |  |  |  |  |\n"
    assert f"| 8 | published layout | left out: 96 s expected{empty}" in text


def test_every_model_has_its_plot_but_on_a_quick_page():
    text = page()
    for name in ("gpt2-124m", "gpt2-autocomplete"):
        assert f"](../../docs/pictures/benchmark-tensorrt-{name}.svg)\n" in text
    quick = replace(DESIGN, is_quick=True)
    assert ".svg" not in as_markdown(quick, summarize(quick, sessions()), DRIVER, CONTEXT)


def test_the_page_says_how_it_was_measured():
    text = page()
    assert (
        "The published layout: 1 worker with 2 threads for one client, 2 workers with 1 thread for "
        "several. It was chosen by these measurements with a cache:\n\n"
        "- 1 worker with 2 threads: 0.300 requests/s with 1 client, 0.310 with 4\n"
        "- 2 workers with 1 thread: 0.200 requests/s with 1 client, 0.360 with 4\n\n"
        "The servers gave the same tokens for 799 of 800 texts. Each answer had all of its new "
        "tokens."
    ) in text
    assert "- 1 client: p50 0.20 ms, p99 0.20 ms, 0.10 ms of processor time a request" in text
    run = "- Run: `python -m benchmarks.tensorrt`, 2026-01-02 03:04 UTC, 20 minutes, no commit."
    assert f"\n\n{run}\n" in text
    assert "Slipway's largest batch: 80 texts." in text


def test_the_document_has_every_trial():
    summary = summarize(DESIGN, sessions(left_out={UNCACHED_X8: 96.4}))
    document = json.loads(json.dumps(as_json(DESIGN, summary, DRIVER, CONTEXT)))
    assert document["command"] == "python -m benchmarks.tensorrt"
    assert [goal["verdict"] for goal in document["goals"]] == ["met"] * 4
    assert document["overhead"]["verdict"] == "met"
    large, small = document["models"]
    assert [len(model["cells"]) for model in (large, small)] == [29, 30]
    trials = [trial for cell in large["cells"] for trial in cell["trials"]]
    assert sorted(trial["order"] for trial in trials) == list(range(1, 42))
    first = large["cells"][0]
    assert (first["system"], first["concurrency"]) == ("slipway", 1)
    assert first["p50_milliseconds"] == 2000
    assert large["left_out"] == [
        {"workload": "batch", "system": "pytorch-uncached", "concurrency": 8,
         "expected_seconds": 96.4}
    ]  # fmt: skip
