"""The trials of every benchmark: their number and order, and the numbers that are made of them."""

from collections import Counter

import numpy as np
import pytest

from benchmarks.errors import BenchmarkError
from benchmarks.estimates import Spread, Verdict, at_least, at_most, spread
from benchmarks.trials import Trial, carry_out, results_of, rounds_of, shuffled
from slipway.benchmarking.estimates import Estimate, estimate_of_median, ratio_of_medians

ONE = (10.0, 10.2, 9.8, 10.1, 30.0)


def generator():
    return np.random.default_rng(1)


def test_every_cell_has_its_trials_spread_over_the_rounds():
    trials = {"a": 5, "b": 3, "c": 1}
    rounds = rounds_of(list(trials), trials.__getitem__, 1)
    assert Counter(cell for cells in rounds for cell in cells) == trials
    assert [sorted(cells) for cells in rounds] == [
        ["a", "b", "c"], ["a"], ["a", "b"], ["a"], ["a", "b"],
    ]  # fmt: skip


def test_each_round_has_an_order_of_its_own_which_the_seed_makes():
    rounds = shuffled([range(9)] * 3, 1)
    assert [sorted(cells) for cells in rounds] == [list(range(9))] * 3
    assert rounds[0] != rounds[1] != rounds[2]
    assert rounds == shuffled([range(9)] * 3, 1) != shuffled([range(9)] * 3, 2)


def test_everything_is_measured_in_order_and_said_with_the_time_that_is_left(monkeypatch):
    clock = iter(range(0, 10_000, 60))
    monkeypatch.setattr("benchmarks.trials.time.monotonic", lambda: float(next(clock)))
    said = []
    trials = carry_out(
        [["a", "b"], ["b", "a"]], str.upper, lambda cell, result: f"{cell} is {result}", said.append
    )
    assert trials == (
        Trial("a", 1, "A"), Trial("b", 1, "B"), Trial("b", 2, "B"), Trial("a", 2, "A"),
    )  # fmt: skip
    # Each measurement takes a minute of this clock.
    assert said[0] == "1/4  round 1 of 2  a is A  (3 min left)"
    assert said[-1] == "4/4  round 2 of 2  a is A  (0 min left)"
    assert results_of(trials, "b") == ["B", "B"]


def test_a_failure_ends_the_trials():
    measured = []

    def measure(cell):
        measured.append(cell)
        if cell == "b":
            raise BenchmarkError("it broke")
        return cell

    with pytest.raises(BenchmarkError, match="it broke"):
        carry_out([["a", "b", "c"]], measure, lambda *_: "", lambda _: None)
    assert measured == ["a", "b"]


def test_one_slow_trial_moves_the_spread_and_not_the_median():
    assert spread(iter(ONE)) == Spread(10.1, 9.8, 30.0)


def test_the_interval_holds_the_ratio_and_repeats():
    ratio = ratio_of_medians((11.0, 11.2, 10.8, 11.1, 12.0), ONE, generator())
    assert ratio.value == pytest.approx(11.1 / 10.1)
    # The most that medians of resamples can differ is what the extremes do.
    assert 10.8 / 30 <= ratio.low < ratio.value < ratio.high <= 12 / 9.8
    assert ratio == ratio_of_medians((11.0, 11.2, 10.8, 11.1, 12.0), ONE, generator())


def test_a_median_has_an_interval_within_the_trials():
    found = estimate_of_median(ONE, generator())
    assert found.value == 10.1
    assert 9.8 <= found.low < 10.1 < found.high <= 30


def test_equal_trials_have_an_interval_without_width_and_one_trial_has_none():
    assert ratio_of_medians((3.0,) * 3, (2.0,) * 3, generator()) == Estimate(1.5, 1.5, 1.5)
    assert ratio_of_medians((3.0,), (2.0,), generator()) == Estimate(1.5, None, None)
    assert estimate_of_median((3.0,), generator()) == Estimate(3.0, None, None)


@pytest.mark.parametrize(
    ("found", "least", "most"),
    [
        (Estimate(2.0, 2.0, 2.0), Verdict.MET, Verdict.MET),
        (Estimate(2.0, 1.9, 2.1), Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS),
        (Estimate(2.0, None, None), Verdict.MET_BY_MEDIANS, Verdict.MET_BY_MEDIANS),
        (Estimate(1.9, 1.0, 3.0), Verdict.MISSED, Verdict.MET_BY_MEDIANS),
        (Estimate(2.1, 1.0, 3.0), Verdict.MET_BY_MEDIANS, Verdict.MISSED),
    ],
)
def test_a_verdict_says_how_sure_it_is(found, least, most):
    assert (at_least(found, 2.0), at_most(found, 2.0)) == (least, most)
