"""The TensorRT container's benchmark: what is measured, with which requests, on which layout."""

import json
from dataclasses import replace

import pytest

from benchmarks.baselines.stack import Layout
from benchmarks.errors import BenchmarkError
from benchmarks.program import ROOT
from benchmarks.servers import server_variables
from benchmarks.tensorrt import __main__ as program
from benchmarks.tensorrt.calibration import CONCURRENCY, calibrate, given, layouts
from benchmarks.tensorrt.design import (
    BATCH,
    GPT2_124M,
    MIXED,
    SAMPLE,
    SAMPLED,
    TOP_K,
    Cell,
    System,
    full_design,
    quick,
)
from benchmarks.tensorrt.models import make_tokenizer
from benchmarks.tensorrt.servers import ServerKey, container_variables
from benchmarks.tensorrt.workloads import Request, generated_tokens, make_requests

FULL = full_design(
    trials=3, stated_trials=1, cores=2, max_batch_size=80, workers=None, longest_seconds=60, seed=1
)
PUBLISHED = (System.SLIPWAY, System.BARE, System.CACHED, System.UNCACHED)
QUICK = quick(FULL)


def test_the_published_table_is_measured_of_all_servers_and_the_bare_loop():
    cells = FULL.cells(GPT2_124M)
    batch = [(cell.concurrency, cell.system) for cell in cells if cell.workload == BATCH]
    assert batch == [
        (number, system)
        for number in (1, 2, 3, 4, 8, 16)
        for system in PUBLISHED
        # A batch of the server's has no more texts than those of eight requests.
        if (number, system) != (16, System.BARE)
    ]
    mixed = [(cell.concurrency, cell.system) for cell in cells if cell.workload == MIXED]
    assert mixed == [
        (number, system)
        for number in (1, 8, 16, 32)
        for system in (System.SLIPWAY, System.STATIC, System.CACHED)
    ]
    for workload in (SAMPLED, TOP_K):
        assert [cell.key for cell in cells if cell.workload == workload] == [
            f"gpt2-124m {workload.name} slipway x1"
        ]
    assert FULL.cells(SAMPLE) == [replace(cell, model=SAMPLE) for cell in cells]


def test_the_goals_are_about_the_large_model():
    goals = [(goal.cell.key, goal.baseline.key, goal.least) for goal in FULL.ratio_goals]
    assert goals == [
        ("gpt2-124m batch slipway x1", "gpt2-124m batch pytorch-uncached x1", 2.9),
        ("gpt2-124m batch slipway x1", "gpt2-124m batch pytorch-cached x1", 1.3),
        ("gpt2-124m batch slipway x8", "gpt2-124m batch bare-loop x8", 0.95),
        ("gpt2-124m sampled slipway x1", "gpt2-124m batch slipway x1", 0.9),
        ("gpt2-124m top-k slipway x1", "gpt2-124m batch slipway x1", 0.9),
        ("gpt2-124m mixed slipway x8", "gpt2-124m mixed slipway x1", 3.0),
    ]
    assert FULL.overhead_starts == 8


@pytest.mark.parametrize("model", [GPT2_124M, SAMPLE])
def test_what_a_goal_is_about_is_measured_more_often_in_shuffled_rounds(model):
    rounds = FULL.rounds(model)
    assert sorted(cell.key for cell in rounds[0]) == sorted(cell.key for cell in FULL.cells(model))
    again = [[cell.key.removeprefix(f"{model.name} ") for cell in cells] for cells in rounds[1:]]
    assert [sorted(keys) for keys in again] == [
        [
            "batch bare-loop x8",
            "batch pytorch-cached x1",
            "batch pytorch-uncached x1",
            "batch slipway x1",
            "batch slipway x8",
            "mixed slipway x1",
            "mixed slipway x8",
            "sampled slipway x1",
            "top-k slipway x1",
        ]
    ] * 2
    assert rounds == FULL.rounds(model)
    assert rounds != replace(FULL, seed=2).rounds(model)


def test_a_quick_run_has_every_goal_and_every_way_to_make_a_model():
    assert len(QUICK.ratio_goals) == len(FULL.ratio_goals)
    assert [bool(model.sample) for model in QUICK.models] == [False, True]
    assert QUICK.is_quick
    assert not FULL.is_quick


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
    assert calibration.key(System.CACHED, 1) == ServerKey(System.CACHED, wide)
    assert calibration.key(System.UNCACHED, 2) == ServerKey(System.UNCACHED, narrow)
    assert calibration.key(System.SLIPWAY, 8) == ServerKey(System.SLIPWAY)
    assert [(each.alone, each.together) for each in calibration.measured] == [(5, 6), (3, 7)]


def test_a_number_of_workers_can_be_given():
    calibration = given(4, 2)
    assert calibration.alone == calibration.together == Layout(4, 1)
    assert calibration.measured == ()


def test_no_setting_of_the_users_reaches_the_servers(tmp_path):
    theirs = {"HOME": "/home/somebody", "OMP_NUM_THREADS": "1", "SLIPWAY_LOG_LEVEL": "DEBUG"}
    assert server_variables(theirs) == {"HOME": "/home/somebody"}
    ours = container_variables(tmp_path, max_batch_size=80, threads=2)
    assert ours["SLIPWAY_MAX_BATCH_SIZE"] == "80"
    assert ours["SLIPWAY_INTRA_OP_THREADS"] == "2"
    assert ours["SM_MODEL_DIR"] == str(tmp_path)


def test_a_cell_has_a_name():
    assert Cell(SAMPLE, MIXED, System.SLIPWAY, 8).key == "gpt2-autocomplete mixed slipway x8"


def test_a_quick_run_never_writes_into_the_results(tmp_path):
    quick = ROOT / "build" / "benchmarks" / "quick"
    results = ROOT / "benchmarks" / "results"
    assert program.parse([]).output == results
    assert program.parse(["--quick"]).output == quick
    assert program.parse(["--quick", "--output", str(results / "..")]).output == results / ".."
    assert program.parse(["--quick", "--output", str(results / "../results")]).output == quick
    assert program.parse(["--quick", "--output", str(tmp_path)]).output == tmp_path


def test_a_missing_part_of_the_published_layout_ends_the_benchmark(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert program.main(["--quick", "--output", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        "The benchmark ended early: nginx is not installed, and the published layout has it in "
        "front. Install it: `apt-get install nginx` on Debian and Ubuntu, `brew install nginx` on "
        "macOS.\n"
    )
    assert list(tmp_path.iterdir()) == []
