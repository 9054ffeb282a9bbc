"""Formulas: what is read, what it is worth, and what is refused."""

import contextlib
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slipway.embedded_aws.monitoring.metric_math import (
    FormulaError,
    Series,
    compute,
    names_in,
    parse,
)

# Those of the user guide's examples; None is its `-`.
METRICS: Mapping[str, Series] = {
    "metric1": (30, 20, 0, 0),
    "metric2": (20, None, 20, None),
    "none": (None, None, None, None),
}
SIGNS = "a formula has numbers, Ids, + - * /, parentheses and MAX([a, b])"


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("metric1", (30, 20, 0, 0)),
        # Precedence, and from left to right.
        ("metric1 * (1 + 2 * 3)", (210, 140, 0, 0)),
        ("metric1 * ((1 + 2) * 3)", (270, 180, 0, 0)),
        ("100 - 4 - 3 - metric1", (63, 73, 93, 93)),
        ("metric1 / 10 / .5", (6, 4, 0, 0)),
        # A missing point counts as 0 beside another, and stays missing beside a number.
        ("metric1 + metric2", (50, 20, 20, 0)),
        ("metric2 + 1", (21, None, 21, None)),
        ("1 - metric2", (-19, None, -19, None)),
        ("none + metric2", (20, None, 20, None)),
        ("none * 2", (None, None, None, None)),
        # A division by zero drops the point, and so does a result that is no finite number.
        ("100 * metric2 / metric1", (100 * 20 / 30, 0, None, None)),
        ("metric1 / metric2", (1.5, None, 0, None)),
        ("metric1 + 1 / 0", (None, None, None, None)),
        (f"metric1 * {10**308}", (None, None, 0, 0)),
        ("MAX([metric1, metric2])", (30, 20, 20, 0)),
        ("MAX([metric2, none])", (20, None, 20, None)),
        ("MAX([none])", (None, None, None, None)),
        ("100 * MAX([metric1 - 10, metric2]) / 2", (1000, 500, 1000, -500)),
    ],
)
def test_time_series(formula, expected):
    assert compute(parse(formula), METRICS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("", "it ends too early"),
        ("metric1 +", "it ends too early"),
        ("(metric1", "it ends too early"),
        ("1 + 1", "it names no metric"),
        ("MAX([metric1, 3])", "an array holds time series only"),
        ("SUM(metric1)", "the function SUM is not evaluated; only MAX([a, b]) is"),
        (
            "SEARCH('{AWS/EC2,InstanceId} MetricName=\"x\"', 'Sum')",
            "the function SEARCH is not evaluated; only MAX([a, b]) is",
        ),
        ("(" * 300 + "m" + ")" * 300, "it has more than 200 numbers, names and signs"),
        *(
            (formula, f"`{sign}` is not evaluated there; {SIGNS}")
            for formula, sign in {
                "(metric1]": "]",
                "[metric1]": "[",
                "MAX(metric1)": "metric1",
                "MAX([])": "]",
                "metric1 metric2": "metric2",
                "-metric1": "-",
                "metric1 ^ 2": "^",
                "metric1 % 2": "%",
                "metric1 >= 2": ">=",
                "metric1 && metric2": "&&",
                "metric1 AND metric2": "AND",
                "SELECT AVG(CPUUtilization) FROM x": "SELECT",
                "metric1; import os": ";",
                "__import__('os')": "_",
                "metric1.real": ".",
            }.items()
        ),
    ],
)
def test_refusals(formula, message):
    with pytest.raises(FormulaError) as caught:
        parse(formula)
    assert str(caught.value) == message


@given(st.text(alphabet="m1+-*/^()<>=,[] .AMX&|", max_size=60))
def test_any_text_is_read_or_refused(text):
    metrics: Mapping[str, Series] = {"m": (1, None), "m1": (2, 3)}
    with contextlib.suppress(FormulaError):
        # An unknown Id is refused before anything is computed: see definitions.
        if metrics.keys() >= names_in(formula := parse(text)):
            compute(formula, metrics)


_numbers = st.floats(0.01, 1000).map(lambda number: f"{number:.3f}")


@given(st.recursive(
    _numbers,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=12,
))  # fmt: skip
def test_arithmetic_is_pythons(expression):
    try:
        expected = eval(expression)  # noqa: S307  # of our own making
    except ZeroDivisionError:
        expected = None
    assert compute(parse(f"m * {expression}"), {"m": (1.0,)}) == (expected,)
