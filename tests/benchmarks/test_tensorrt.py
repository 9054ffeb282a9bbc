"""The TensorRT container's benchmark: what is measured, the verdicts, and real servers."""

import json
from dataclasses import replace

import pytest

from benchmarks.baselines.stack import Layout
from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Verdict
from benchmarks.load import LoadResult
from benchmarks.overhead import Cost, Program
from benchmarks.program import ROOT
from benchmarks.tensorrt import session
from benchmarks.tensorrt.design import (
    BATCH,
    GOALS,
    GPT2_124M,
    MIXED,
    SAMPLE,
    SAMPLED,
    TOP_K,
    Cell,
    Design,
    System,
    Workload,
    quick,
)
from benchmarks.tensorrt.models import ensure_model, make_tokenizer
from benchmarks.tensorrt.report import page, result
from benchmarks.tensorrt.session import (
    CONCURRENCY,
    Agreement,
    Calibration,
    Measured,
    ModelSession,
    Server,
    calibrate,
    given,
    layouts,
    measure_model,
    start_server,
)
from benchmarks.tensorrt.workloads import Request, generated_tokens, make_requests
from benchmarks.trials import Trial
from tests.benchmarks.results import committed, document_of, shape

FULL = Design(trials=3, cores=2)
OURS = (System.SLIPWAY,)
HASTY = replace(
    quick(replace(FULL, workers=1, max_batch_size=16)),
    models=(SAMPLE,),
    workloads=(
        Workload("batch", 2, 12, 5, 5, 1, (System.SLIPWAY, System.BARE), (1, 3)),
        Workload("mixed", 1, 12, 2, 9, 4, OURS, (1, 2)),
        Workload("sampled", 2, 12, 5, 5, 1, OURS, (1,), is_sampled=True, top_k=3),
    ),
    seconds=0.01,
)


def test_the_published_table_is_measured_of_all_servers_and_the_bare_loop():
    cells = FULL.cells(GPT2_124M)
    batch = [(cell.concurrency, cell.system) for cell in cells if cell.workload == BATCH]
    assert batch == [
        (number, system)
        for number in (1, 2, 3, 4, 8, 16)
        for system in (System.SLIPWAY, System.BARE, System.CACHED, System.UNCACHED)
        # A batch of the server's has no more texts than those of eight requests.
        if (number, system) != (16, System.BARE)
    ]
    assert FULL.cells(SAMPLE) == [replace(cell, model=SAMPLE) for cell in cells]


@pytest.mark.parametrize("model", [GPT2_124M, SAMPLE])
def test_what_a_goal_is_about_is_measured_more_often(model):
    first, *others = FULL.rounds(model)
    assert {cell.key for cell in first} == {cell.key for cell in FULL.cells(model)}
    about = {each for goal in GOALS for each in (goal.fast, goal.baseline)}
    assert [{cell.about for cell in cells} for cells in others] == [about, about]


def test_a_quick_run_has_every_goal_and_every_way_to_make_a_model():
    hasty = quick(FULL)
    cells = {cell.about for cell in hasty.cells(hasty.models[0])}
    assert {each for goal in GOALS for each in (goal.fast, goal.baseline)} <= cells
    assert [bool(model.sample) for model in hasty.models] == [False, True]


def test_sampled_requests_are_the_batchs_with_a_seed_each():
    # Lengths and texts are those that the goal compares with.
    assert (SAMPLED.texts, SAMPLED.prompt_tokens) == (BATCH.texts, BATCH.prompt_tokens)
    for workload, added in ((SAMPLED, {}), (TOP_K, {"top_k": 50})):
        for number, request in enumerate(make_requests(workload, SAMPLE, seed=1)):
            assert json.loads(request.body)["parameters"] == {
                "max_new_tokens": 30,
                "do_sample": True,
                "seed": number,
                **added,
            }


@pytest.mark.parametrize("workload", [BATCH, MIXED])
def test_prompts_have_exactly_their_tokens(workload):
    tokenizer = make_tokenizer(SAMPLE.vocabulary)
    requests = make_requests(workload, SAMPLE, seed=1)
    assert requests == make_requests(workload, SAMPLE, seed=1)
    assert requests != make_requests(workload, SAMPLE, seed=2)
    assert len(set(requests)) == len(requests)
    for request in requests:
        document = json.loads(request.body)
        assert document["parameters"] == {"max_new_tokens": request.new_tokens}
        encoded = [encoding.ids for encoding in tokenizer.encode_batch(document["inputs"])]
        assert encoded == [list(prompt) for prompt in request.prompts]
        assert [len(ids) for ids in encoded] == [12] * workload.texts


def test_lengths_are_fixed_or_spread_over_the_range():
    assert {request.new_tokens for request in make_requests(BATCH, SAMPLE, seed=1)} == {30}
    lengths = [request.new_tokens for request in make_requests(MIXED, SAMPLE, seed=1)]
    assert (min(lengths), max(lengths)) == (4, 40)
    assert len(set(lengths)) > 20
    means = [sum(lengths[start : start + 8]) / 8 for start in range(0, len(lengths), 8)]
    assert min(means) > 19
    assert max(means) < 25


def test_the_words_of_an_answer_are_its_tokens():
    tokenizer = make_tokenizer(10)
    tokens = ((3, 3, 0), (9, 1, 2))
    request = Request(((1, 2), (4,)), new_tokens=3)
    answer = json.dumps([{"generated_text": tokenizer.decode(list(ids))} for ids in tokens])
    assert generated_tokens(request, answer) == tokens


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ('[{"generated_text": "t1 t2"}]', r"an answer has \[2\] new tokens instead of \[3\]"),
        ("[]", r"an answer has \[\] new tokens instead of \[3\]"),
        ('[{"generated_text": "a b c"}]', "not an answer of the container's form"),
        ('{"error": 1}', "not an answer of the container's form"),
        ("<html>", "not an answer of the container's form: <html>"),
    ],
)
def test_an_answer_that_is_too_short_is_not_timed(answer, message):
    with pytest.raises(BenchmarkError, match=message):
        generated_tokens(Request(((1, 2),), new_tokens=3), answer)


@pytest.mark.parametrize(
    ("cores", "found"),
    [
        (1, [(1, 1)]),
        (2, [(1, 2), (2, 1)]),
        (6, [(1, 6), (2, 3), (6, 1)]),
        (8, [(1, 8), (2, 4), (4, 2), (8, 1)]),
    ],
)
def test_candidates_use_all_cores(cores, found):
    assert layouts(cores) == [Layout(*each) for each in found]


def test_each_number_of_clients_gets_the_layout_that_serves_it_best():
    rates = {(1, 1): 5.0, (1, CONCURRENCY): 6.0, (2, 1): 3.0, (2, CONCURRENCY): 7.0}
    calibration = calibrate(2, lambda layout, clients: rates[layout.workers, clients])
    wide, narrow = Layout(1, 2), Layout(2, 1)
    assert calibration.server(System.CACHED, 1) == Server(System.CACHED, wide)
    assert calibration.server(System.UNCACHED, 2) == Server(System.UNCACHED, narrow)
    assert calibration.server(System.SLIPWAY, 8) == Server(System.SLIPWAY)
    assert [(each.alone, each.together) for each in calibration.measured] == [(5, 6), (3, 7)]


def test_a_number_of_workers_can_be_given():
    calibration = given(4, 2)
    assert calibration.alone == calibration.together == Layout(4, 1)
    assert calibration.measured == ()


WIDE, NARROW = Layout(1, 2), Layout(2, 1)
CALIBRATION = Calibration(WIDE, NARROW, (Measured(WIDE, 0.3, 0.31), Measured(NARROW, 0.2, 0.36)))
# Seconds of one request, alone.
SECONDS = {
    System.SLIPWAY: 2.0, System.STATIC: 2.5, System.BARE: 1.9, System.CACHED: 3.0,
    System.UNCACHED: 12.0,
}  # fmt: skip


def model_session(model=GPT2_124M, faster=(1.0, 1.0, 1.0), left_out=None):
    """A session in which Slipway takes a quarter as long per request with eight clients."""
    left_out = left_out or {}
    trials = []
    for number, cells in enumerate(FULL.rounds(model), start=1):
        for cell in cells:
            if cell in left_out:
                continue
            seconds = SECONDS[cell.system] * cell.concurrency
            if cell.system in (System.SLIPWAY, System.BARE) and cell.concurrency >= 8:
                seconds /= 4
            if cell.system is System.SLIPWAY:
                seconds *= (1.05 if cell.workload.is_sampled else 1) / faster[number - 1]
            times = ((seconds,),) * cell.concurrency
            load = LoadResult(times, (seconds,) * cell.concurrency, (), 0.0, seconds)
            trials.append(Trial(cell, number, load))
    return ModelSession(model, CALIBRATION, tuple(trials), left_out, Agreement(800, 799))


def costs(p50s=(0.001, 0.001, 0.001), ratios=(1.2, 1.2, 1.2)):
    """Lives of a server whose request costs so much more than the echo's 0.3 ms."""
    found = []
    for number, (p50, ratio) in enumerate(zip(p50s, ratios, strict=True), start=1):
        found.append(Trial(Program.SLIPWAY, number, Cost(p50, 0.0003 * ratio)))
        found.append(Trial(Program.ECHO, number, Cost(0.0008, 0.0003)))
    return tuple(found)


def document(lives=None, **given):
    sessions = [model_session(**given), model_session(SAMPLE)]
    return document_of({**result(FULL, sessions, lives or costs()), "driver": []})


def test_ratios_compare_throughputs():
    # 12 s against 2 s, 3 s against 2 s, and a quarter of the time with eight clients.
    goals = document()["goals"][:6]
    values = [6.0, 1.5, 0.95, 0.9524, 0.9524, 4.0]
    assert [goal["found"]["value"] for goal in goals] == values
    assert {goal["verdict"] for goal in goals} == {Verdict.MET}
    slow = document(faster=(0.4,) * 3)["goals"][:4]
    assert [goal["verdict"] for goal in slow] == [*[Verdict.MISSED] * 3, Verdict.MET]


def test_what_was_left_out_has_no_verdict_and_its_own_row():
    left_out = {
        Cell(GPT2_124M, BATCH, System.UNCACHED, 1): 70.0,
        Cell(GPT2_124M, BATCH, System.UNCACHED, 8): 96.4,
    }
    found = document(left_out=left_out)
    goal = found["goals"][0]
    assert (goal["found"], goal["verdict"]) == (None, Verdict.NOT_MEASURED)
    assert shape(found["models"][0]["left_out"]) == shape(
        committed("tensorrt")["models"][0]["left_out"]
    )
    text = page(found)
    assert "| 8 | published layout | left out: 96 s expected |  |  |  |  |  |\n" in text
    assert "concurrency 1 | at least 2.9 |  |  | not measured |" in text


@pytest.mark.parametrize(
    ("p50s", "ratios", "verdicts"),
    [
        ((0.001, 0.001, 0.0011), (1.2, 1.3, 1.4), (Verdict.MET, Verdict.MET)),
        ((0.001, 0.001, 0.0013), (1.2, 1.3, 1.6), (Verdict.MET_BY_MEDIANS,) * 2),
        ((0.001, 0.0013, 0.0013), (1.2, 1.6, 1.6), (Verdict.MISSED,) * 2),
    ],
)
def test_the_overhead_is_of_the_medians_of_several_starts(p50s, ratios, verdicts):
    *_, p50, ratio = document(lives=costs(p50s, ratios))["goals"]
    assert p50["found"]["value"] == sorted(p50s)[1] * 1000
    assert ratio["found"]["value"] == sorted(ratios)[1]
    assert (p50["verdict"], ratio["verdict"]) == verdicts


def test_the_document_has_every_trial_in_the_committed_form():
    found, kept = document(), committed("tensorrt")
    for name in ("design", "goals", "overhead"):
        assert shape(found[name]) == shape(kept[name])
    large, small = found["models"]
    for name in ("calibration", "agreement", "cells"):
        assert shape(large[name]) == shape(kept["models"][0][name])
    assert [len(model["cells"]) for model in (large, small)] == [37, 37]
    trials = [trial for cell in large["cells"] for trial in cell["trials"]]
    assert sorted(trial["order"] for trial in trials) == list(range(1, 56))


def test_a_layout_that_was_given_is_said_to_be():
    found = document()
    found["models"][0]["calibration"]["candidates"] = []
    assert "2 workers with 1 thread for several, as `--workers` says." in page(found)


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def model_directory(models):
    return ensure_model(SAMPLE, models, 1, lambda _: None)


@pytest.mark.size("all")
def test_no_token_of_the_samples_copy_ends_a_text(model_directory):
    for name in ("config.json", "generation_config.json"):
        assert json.loads((model_directory / name).read_text())["eos_token_id"] is None
    committed = ROOT / "samples" / "gpt2-autocomplete" / "model"
    for name in ("model.onnx", "model.safetensors"):
        assert (model_directory / name).read_bytes() == (committed / name).read_bytes()


@pytest.mark.size("all")
def test_a_model_is_made_once_and_again_when_something_changes(models, model_directory):
    said = []
    assert ensure_model(SAMPLE, models, 1, said.append) == model_directory
    assert said == []
    recipe = json.loads((model_directory / "made.json").read_text())
    (model_directory / "made.json").write_text(json.dumps(recipe | {"seed": 2}))
    (model_directory / "tokenizer.json").unlink()
    ensure_model(SAMPLE, models, 1, said.append)
    assert said == [f"making the sample in {model_directory}"]
    assert (model_directory / "tokenizer.json").is_file()
    assert json.loads((model_directory / "made.json").read_text()) == recipe


@pytest.mark.size("all")
def test_everything_of_one_model_is_measured(tmp_path, models, model_directory):
    said = []
    found = measure_model(HASTY, SAMPLE, tmp_path, models=models, say=said.append)
    rounds = [[cell.key for cell in cells] for cells in HASTY.rounds(SAMPLE)]
    assert [trial.cell.key for trial in found.trials] == [key for keys in rounds for key in keys]
    for trial in found.trials:
        assert len(trial.result.latencies_seconds) == trial.cell.concurrency
        assert trial.result.requests_per_second > 0
    assert found.left_out == {}
    # The bare loop decodes the texts of as many requests as there are clients.
    assert found.agreement == Agreement(texts=6, same=6)
    assert said[0] == "starting Slipway"


@pytest.mark.size("all")
def test_what_would_take_too_long_is_warmed_up_and_left_out(tmp_path, model_directory, monkeypatch):
    # Slipway's own server in the place of the others: what differs is what the test makes differ.
    monkeypatch.setattr(
        session, "start_server", lambda _server, *rest: start_server(Server(System.SLIPWAY), *rest)
    )
    design = replace(
        HASTY,
        workloads=(Workload("batch", 2, 12, 5, 5, 1, (System.SLIPWAY, System.CACHED), (1,)),),
        longest_seconds=0.0,
    )
    found = measure_model(
        design, SAMPLE, tmp_path, models=model_directory.parent, say=lambda _: None
    )
    [(cell, seconds)] = found.left_out.items()
    assert cell == Cell(SAMPLE, design.workloads[0], System.CACHED, 1)
    assert seconds > 0
    assert {trial.cell.system for trial in found.trials} == {System.SLIPWAY}
    assert found.agreement == Agreement(texts=2, same=2)
