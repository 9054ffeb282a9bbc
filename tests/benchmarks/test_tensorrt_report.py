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
from benchmarks.overhead import Cost, Program
from benchmarks.report import Context
from benchmarks.tensorrt.calibration import Calibration, Measured
from benchmarks.tensorrt.design import GPT2_124M, SAMPLE, Cell, System, full_design
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
SECONDS = {
    System.SLIPWAY: 2.0,
    System.STATIC: 2.5,
    System.BARE: 1.9,
    System.CACHED: 3.0,
    System.UNCACHED: 12.0,
}


def load(clients: int, seconds: float) -> LoadResult:
    return LoadResult(((seconds,),) * clients, (seconds,) * clients, (), 0.0, seconds)


def session(model=GPT2_124M, *, faster=(1.0, 1.0, 1.0), left_out=None):
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
                seconds *= 1.05 if cell.workload.is_sampled else 1
            if cell.system is System.BARE:
                seconds /= 4 if cell.concurrency >= 8 else 1
            trials.append(Trial(cell, number, load(cell.concurrency, seconds)))
    return ModelSession(model, CALIBRATION, tuple(trials), left_out, Agreement(800, 799))


def costs(p50s=(0.001, 0.001, 0.001), ratios=(1.2, 1.2, 1.2)):
    """Returns lives of a server whose request costs so much more than the echo's 0.3 ms."""
    found = []
    for number, (p50, ratio) in enumerate(zip(p50s, ratios, strict=True), start=1):
        found.append(Trial(Program.SLIPWAY, number, Cost(p50, 0.0003 * ratio)))
        found.append(Trial(Program.ECHO, number, Cost(0.0008, 0.0003)))
    return tuple(found)


def summarized(design=DESIGN, *, lives=None, **given):
    return summarize(design, [session(**given), session(SAMPLE)], lives or costs())


@pytest.mark.parametrize(
    ("faster", "verdicts"),
    [
        # 12 s against 2 s, 3 s against 2 s, and a quarter of the time with eight clients.
        ((1.0, 1.0, 1.0), [Verdict.MET] * 6),
        # 6 x and 1.5 x become 3 x and 0.75 x in one round of three.
        ((0.4, 1.0, 1.0), [Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS]),
        ((0.4, 0.4, 0.4), [Verdict.MISSED, Verdict.MISSED, Verdict.MISSED, Verdict.MET]),
    ],
)
def test_a_verdict_says_how_sure_it_is(faster, verdicts):
    goals = summarized(faster=faster).goals
    assert [goal.verdict for goal in goals][: len(verdicts)] == verdicts
    assert summarized(faster=faster).goals == goals


def test_ratios_compare_throughputs():
    assert [goal.ratio.value for goal in summarized().goals if goal.ratio] == [
        pytest.approx(6.0),
        pytest.approx(1.5),
        pytest.approx(0.95),
        pytest.approx(1 / 1.05),
        pytest.approx(1 / 1.05),
        pytest.approx(4.0),
    ]


def test_what_was_left_out_has_no_verdict():
    left_out = {Cell(GPT2_124M, DESIGN.workloads[0], System.UNCACHED, 1): 70.0}
    goal = summarized(left_out=left_out).goals[0]
    assert (goal.ratio, goal.verdict) == (None, Verdict.NOT_MEASURED)


@pytest.mark.parametrize(
    ("p50s", "ratios", "verdicts"),
    [
        ((0.001, 0.001, 0.0011), (1.2, 1.3, 1.4), (Verdict.MET, Verdict.MET)),
        ((0.001, 0.001, 0.0013), (1.2, 1.3, 1.6), (Verdict.MET_BY_MEDIANS,) * 2),
        ((0.001, 0.0013, 0.0013), (1.2, 1.6, 1.6), (Verdict.MISSED,) * 2),
    ],
)
def test_the_overhead_is_of_the_medians_of_several_starts(p50s, ratios, verdicts):
    overhead = summarized(lives=costs(p50s, ratios)).overhead
    assert overhead.p50.value == pytest.approx(sorted(p50s)[1])
    assert overhead.ratio.value == pytest.approx(sorted(ratios)[1])
    assert (overhead.p50_verdict, overhead.ratio_verdict) == verdicts
    assert overhead.starts == 3


def page(**given) -> str:
    return as_markdown(DESIGN, summarized(**given), DRIVER, CONTEXT)


def test_the_page_begins_with_the_goals():
    assert page().startswith(
        "# The TensorRT container's serving path on the CPU, against the published layout\n\n"
        "**8 of 8 goals met.**\n\n"
        "| goal |  | found | 95 % interval |  |\n"
        "| --- | ---: | ---: | ---: | ---: |\n"
        "| GPT-2 124M: throughput against the published layout, concurrency 1 | at least 2.9 | "
        "6.00 | 6.00 to 6.00 | met |\n"
    )
    assert (
        "| The server over a stub model: p50 of a lone request | under 1.2 ms | 1.00 ms | "
        "1.00 to 1.00 | met |\n"
        "| The server over a stub model: processor time of a request with 64 connections, against "
        "uvicorn's echo | at most 1.5 | 1.20 | 1.20 to 1.20 | met |\n\n"
        "Intervals: percentile bootstrap of the medians, 95 %, over 3 trials each. The range of so "
        "many trials covers the true median with 75%. The stub has 3 starts, each of which counts "
        "as a trial.\n"
    ) in page()
    missed = page(faster=(0.4, 0.4, 0.4))
    assert "**5 of 8 goals met.**" in missed
    assert "| at least 2.9 | 2.40 | 2.40 to 2.40 | not met |" in missed


def test_a_quick_page_says_that_it_proves_nothing():
    quick = replace(DESIGN, is_quick=True)
    text = as_markdown(quick, summarized(quick), DRIVER, CONTEXT)
    assert CLOSED_LOOP in text
    assert "A quick run, with small models and a few requests: it shows that everything" in text
    assert "A quick run" not in page()


def test_every_server_has_its_row_and_ours_the_ratios():
    text = page(left_out={UNCACHED_X8: 96.4})
    assert "\n### GPT-2 124M: 10 texts a request, 12 + 30 tokens\n" in text
    assert "\n### The sample: 1 text a request, 12 + 4 to 40 tokens\n" in text
    assert (
        "of the bare loop's | of the cached layout's | of the published layout's | p50 ms" in text
    )
    assert "| 1 | Slipway | 0.500 | 0.95 x | 1.50 x | 6.00 x | 2,000 | 2,000 |\n" in text
    assert "| 1 | bare decode loop | 0.526 |  |  |  | 1,900 | 1,900 |\n" in text
    assert "| 1 | published layout, with a cache | 0.333 |  |  |  | 3,000 | 3,000 |\n" in text
    assert "| 16 | bare decode loop |" not in text
    assert "\n### The sample: 10 texts a request, 12 + 30 tokens, sampled\n" in text
    assert "\n### The sample: 10 texts a request, 12 + 30 tokens, sampled with `top_k` 50\n" in text
    empty = " |  |  |  |  |  |\n"
    assert f"| 8 | published layout | left out: 96 s expected{empty}" in text


def test_every_model_has_its_plot_but_on_a_quick_page():
    text = page()
    for name in ("gpt2-124m", "gpt2-autocomplete"):
        assert f"](../../docs/pictures/benchmark-tensorrt-{name}.svg)\n" in text
    quick = replace(DESIGN, is_quick=True)
    assert ".svg" not in as_markdown(quick, summarized(quick), DRIVER, CONTEXT)


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
    assert (
        "Over a model that computes nothing, the medians of 3 starts of each program:\n\n"
        "- Slipway's server: p50 1.00 ms with 1 client, 0.360 ms of processor time a request with "
        "64\n"
        "- uvicorn's echo, with h11: p50 0.80 ms with 1 client, 0.300 ms of processor time a "
        "request with 64\n"
    ) in text
    assert "- 1 client: p50 0.20 ms, p99 0.20 ms, 0.10 ms of processor time a request" in text
    run = "- Run: `python -m benchmarks.tensorrt`, 2026-01-02 03:04 UTC, 20 minutes, no commit."
    assert f"\n\n{run}\n" in text
    assert "Slipway's largest batch: 80 texts." in text


def test_the_document_has_every_trial():
    summary = summarized(left_out={UNCACHED_X8: 96.4})
    document = json.loads(json.dumps(as_json(DESIGN, summary, costs(), DRIVER, CONTEXT)))
    assert document["command"] == "python -m benchmarks.tensorrt"
    assert [goal["verdict"] for goal in document["goals"]] == ["met"] * 6
    assert document["overhead"]["processor_verdict"] == "met"
    assert len(document["overhead"]["lives"]) == 6
    large, small = document["models"]
    assert [len(model["cells"]) for model in (large, small)] == [36, 37]
    trials = [trial for cell in large["cells"] for trial in cell["trials"]]
    assert sorted(trial["order"] for trial in trials) == list(range(1, 55))
    first = large["cells"][0]
    assert (first["system"], first["concurrency"]) == ("slipway", 1)
    assert first["p50_milliseconds"] == 2000
    assert large["left_out"] == [
        {"workload": "batch", "system": "pytorch-uncached", "concurrency": 8,
         "expected_seconds": 96.4}
    ]  # fmt: skip
