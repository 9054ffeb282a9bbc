"""Medians, spreads, ratios and the verdict."""

import pytest

from benchmarks.control_plane.design import COMMANDS, GOAL
from benchmarks.control_plane.summary import summarize
from benchmarks.estimates import Spread, Verdict
from tests.benchmarks.trials import design, trials_of

ONE = (10.0, 10.2, 9.8, 10.1, 30.0)


def summary_of(*large: float, small: tuple[float, ...] = ONE):
    plan = design(1, 500, trials=len(large))
    return summarize(plan, trials_of(plan, {1: small[: len(large)], 500: large}))


def test_a_cell_has_its_median_and_its_spread():
    summary = summary_of(11.0, 11.2, 10.8, 11.1, 12.0)
    small, large = summary.of(GOAL.command, 1), summary.of(GOAL.command, 500)
    # The one slow run of thirty seconds moves the spread, not the median.
    assert small.seconds == Spread(10.1, 9.8, 30.0)
    assert small.median_processor_seconds == 5.05
    assert [trial.result.seconds for trial in small.trials] == list(ONE)
    assert small.ratio is None
    assert large.ratio is not None
    assert large.ratio.value == pytest.approx(11.1 / 10.1)


def test_the_interval_holds_the_ratio_and_repeats():
    first, second = summary_of(11.0, 11.2, 10.8, 11.1, 12.0), summary_of(11.0, 11.2, 10.8, 11.1, 12)
    ratio = first.of(GOAL.command, 500).ratio
    assert ratio is not None
    assert ratio.low is not None
    assert ratio.high is not None
    # The most that medians of resamples can differ is what the extremes do.
    assert 10.8 / 30 <= ratio.low < ratio.value < ratio.high <= 12 / 9.8
    assert first == second


def test_equal_trials_have_an_interval_without_width():
    ratio = summary_of(3.0, 3.0, 3.0, small=(2.0, 2.0, 2.0)).of(GOAL.command, 500).ratio
    assert ratio is not None
    assert (ratio.low, ratio.value, ratio.high) == (1.5, 1.5, 1.5)


def test_ratios_are_to_the_smallest_size():
    plan = design(10, 100, 500, trials=1)
    seconds = {10: [2.0], 100: [3.0], 500: [4.0]}
    summary = summarize(plan, trials_of(plan, seconds))
    ratios = [summary.of(GOAL.command, size).ratio for size in plan.sizes]
    assert [ratio.value if ratio else None for ratio in ratios] == [None, 1.5, 2.0]
    assert set(summary.cells) == {
        cell for size in plan.sizes for c in COMMANDS if (cell := summary.of(c, size).cell)
    }


@pytest.mark.parametrize(
    ("large", "verdict"),
    [
        ((11.0, 11.1, 11.2), Verdict.MET),
        ((11.0, 11.1, 20.0), Verdict.MET_BY_MEDIANS),
        ((12.1, 12.2, 12.3), Verdict.MISSED),
        ((11.0,), Verdict.MET_BY_MEDIANS),
        ((13.0,), Verdict.MISSED),
    ],
)
def test_the_verdict_says_how_sure_it_is(large, verdict):
    small = (10.0,) * len(large)
    assert summary_of(*large, small=small).verdict is verdict


@pytest.mark.parametrize("sizes", [(1, 10), (10, 500), (500,), (1,)])
def test_without_both_of_the_goals_sizes_there_is_no_verdict(sizes):
    plan = design(*sizes, trials=2)
    summary = summarize(plan, trials_of(plan, dict.fromkeys(sizes, (1.0, 1.0))))
    assert summary.verdict is Verdict.NOT_MEASURED
