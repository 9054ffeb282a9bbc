"""The committed numbers of docs/sizing.md are those of the committed rows and seed."""

import json
from collections import Counter

import pytest

from benchmarks.sizing.fit import fit, predicted_seconds
from benchmarks.sizing.report import PAGE, RESULTS, corrected_table, summary_table
from benchmarks.sizing.rows import read_rows
from benchmarks.sizing.validation import (
    SEED,
    Prediction,
    cheaper_of_two,
    corrected,
    held_out,
    predict_held_out,
    split,
    summary,
)
from slipway.sizing.facts import band_of, constants

ROWS = read_rows()
STATED = json.loads(RESULTS.read_text("utf-8"))


def test_a_third_of_the_pairs_is_held_out_by_the_seed_that_was_written_down():
    pairs = {row.pair: row.server.gpu.product for row in ROWS}
    held = held_out(pairs)
    assert (SEED, len(pairs), len(held)) == (47, 18, 6)
    fitted, rest = split(ROWS)
    assert {row.pair for row in rest} == held
    assert not held & {row.pair for row in fitted}
    # No GPU is without a row.
    assert {row.server.gpu.product for row in fitted} == set(pairs.values())


def test_held_out_rows_are_predicted_as_the_page_says():
    found = predict_held_out(ROWS)
    stated = STATED["summary"]["held_out"]
    for group, is_dense in (("dense", True), ("other", False)):
        own = summary([each for each in found if each.row.is_dense == is_dense])
        assert own == pytest.approx(stated[group], rel=0.02)
    assert list(cheaper_of_two(found)) == stated["cheaper_of_two"]
    assert summary_table(STATED) in PAGE.read_text("utf-8")
    # Dense models reach the goal of the median.
    assert stated["dense"]["median_percent"] <= 15


def test_the_constants_in_use_are_those_of_all_rows_that_measured_something_known():
    assert fit(ROWS) == pytest.approx(constants(), rel=0.02)
    used = Counter(row.label.split(",")[0] for row in ROWS)
    assert "eagle3" not in used
    assert all(row.load.output_tokens >= 582 for row in ROWS if row.server.engine == "vllm")
    assert len(ROWS) == 180


def test_nine_of_ten_rows_are_inside_the_bands_that_fit_states():
    predictions = [Prediction(row, predicted_seconds(row, constants())) for row in ROWS]
    inside = [
        1 / band.factor <= each.seconds / each.row.seconds <= band.factor
        for each in predictions
        for band in [band_of(each.row.network, each.row.server, each.row.load.concurrency)]
    ]
    assert sum(inside) / len(inside) >= 0.9
    assert STATED["summary"]["each_pair"]["inside_percent"] >= 90


def test_a_measurement_helps_its_type_and_its_gpu_alone():
    stated = STATED["summary"]["corrected"]
    medians = {
        place: [found[side]["median_percent"] for side in ("before", "after")]
        for place, found in stated.items()
    }
    helps = {place: after < before for place, (before, after) in medians.items()}
    assert helps == {"type": True, "gpu": True, "other GPU": False}
    assert corrected_table(STATED) in PAGE.read_text("utf-8")


def test_rows_of_a_pair_correct_the_others_of_their_model():
    # On A10G, three times as fast as predicted.
    llama = [row for row in ROWS if row.model == "meta-llama/Llama-2-7b-hf"]
    slow = [
        Prediction(row, row.seconds * (3 if row.server.gpu.product == "NVIDIA A10G" else 1))
        for row in llama
    ]
    found = corrected(slow)
    # Four loads on each of four types, three of them with an A10G.
    assert {place: len(changes) for place, changes in found.items()} == {
        "type": 16, "gpu": 24, "other GPU": 24,
    }  # fmt: skip
    assert all(after.error == pytest.approx(0) for _, after in found["type"] + found["gpu"])
    wrong = sorted(round(after.error, 3) for _, after in found["other GPU"])
    # A10G corrects the A100 by a third, and the A100 corrects nothing.
    assert wrong == [-0.667] * 12 + [2.0] * 12
