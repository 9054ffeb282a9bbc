"""Formulas: what is read, what it is worth, and what is refused."""

import contextlib
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from embedded_aws.monitoring.expressions import ExpressionError, names_in, parse
from embedded_aws.monitoring.metric_math import Scalar, Series, SeriesArray, Value, evaluate

Points = Sequence[float | None]
# Those of the user guide's examples; None is its `-`.
METRICS: Mapping[str, Points] = {
    "metric1": (30, 20, 0, 0),
    "metric2": (20, None, 20, None),
    "none": (None, None, None, None),
}
CHOICES: Mapping[str, Points] = {
    "metric1": (1, 1, 0, 0, None),
    "metric2": (30, None, 0, 0, 30),
    "metric3": (0, 0, 20, None, 20),
}


def result(expression: str, metrics: Mapping[str, Points] = METRICS) -> Value:
    series = {name: Series(tuple(points)) for name, points in metrics.items()}
    return evaluate(series, {"e": parse(expression)}, period_seconds=60)["e"]


def points(expression: str, metrics: Mapping[str, Points] = METRICS) -> Points:
    value = result(expression, metrics)
    assert isinstance(value, Series), value
    return value.points


def refusal(expression: str, metrics: Mapping[str, Points] = METRICS) -> str:
    with pytest.raises(ExpressionError) as caught:
        result(expression, metrics)
    return str(caught.value).removeprefix('"e": ')


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("1", 1),
        ("1.5e3", 1500),
        (".5", 0.5),
        ("1 + 2 * 3", 7),
        ("(1 + 2) * 3", 9),
        ("10 - 4 - 3", 3),
        ("100 / 10 / 5", 2),
        ("2 ^ 3 ^ 2", 512),
        ("-2 ^ 2", -4),
        ("2 ^ -1", 0.5),
        ("--3", 3),
        ("2 * -3", -6),
        ("1 < 2", 1),
        ("2 <= 1", 0),
        ("1 == 1", 1),
        ("1 != 1", 0),
        ("1 + 1 > 1", 1),
        ("1 > 2 OR 2 > 1", 1),
        ("1 > 2 || 0", 0),
        ("1 AND 0", 0),
        ("1 && 2", 1),
        ("1 OR 0 AND 0", 1),
        ("1 / 0", None),
        ("0 ^ -1", None),
        ("(-8) ^ 0.5", None),
        ("10 ^ 400", None),
        ("1e308 * 10", None),
    ],
)
def test_numbers(expression: str, expected: float | None) -> None:
    assert result(expression) == Scalar(expected)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # From the user guide's table of comparison and logical operators.
        ("metric1 < metric2", (0, 0, 1, 0)),
        ("metric1 >= 30", (1, 0, 0, 0)),
        ("metric1 > 15 AND metric2 > 15", (1, 0, 0, 0)),
        # A missing point counts as 0 beside another, and stays missing beside a number.
        ("metric1 + metric2", (50, 20, 20, 0)),
        ("metric2 + 1", (21, None, 21, None)),
        ("1 - metric2", (-19, None, -19, None)),
        ("-metric2", (-20, None, -20, None)),
        ("none + metric2", (20, None, 20, None)),
        ("none * 2", (None, None, None, None)),
        # A division by zero drops the point.
        ("100 * metric2 / metric1", (100 * 20 / 30, 0, None, None)),
        ("metric1 / metric2", (1.5, None, 0, None)),
        ("metric1 / 0", (None, None, None, None)),
        ("ABS(metric1 - metric2)", (10, 20, 20, 0)),
        ("CEIL(metric1 / 7)", (5, 3, 0, 0)),
        ("FLOOR(metric1 / 7)", (4, 2, 0, 0)),
        ("SUM([metric1, metric2])", (50, 20, 20, 0)),
        ("AVG([metric1, metric2])", (25, 10, 10, 0)),
        ("MIN([metric1, metric2])", (20, 20, 0, 0)),
        ("MAX([metric1, metric2])", (30, 20, 20, 0)),
        ("MAX([metric2, none])", (20, None, 20, None)),
        ("MAX([none])", (None, None, None, None)),
        ("SUM(-[metric1, metric2])", (-50, -20, -20, 0)),
        ("SUM(60 / [metric1, metric2])", (5, 3, 3, None)),
        ("MAX(ABS([metric1, metric2] - 25))", (5, 5, 25, 25)),
        ("SUM([metric1, [metric2, none]])", (50, 20, 20, 0)),
        # Over the times of one series: numbers.
        ("metric1 - MIN(metric1)", (30, 20, 0, 0)),
        ("MAX(metric2) + metric1", (50, 40, 20, 20)),
        ("SUM(metric2) + metric1", (70, 60, 40, 40)),
        ("AVG(metric2) + metric1", (40, 30, 10, 10)),
        ("metric1 * SUM(none)", (None, None, None, None)),
        ("metric1 / PERIOD(metric1)", (0.5, 20 / 60, 0, 0)),
        ("SUM(METRICS())", (50, 20, 20, 0)),
        ('SUM(METRICS("2"))', (20, None, 20, None)),
        ("FILL(metric2, 7)", (20, 7, 20, 7)),
        ("FILL(metric2, metric1)", (20, 20, 20, 0)),
        ("FILL(metric2, none)", (20, None, 20, None)),
        ("FILL(metric2, MIN(metric2))", (20, 20, 20, 20)),
        ("FILL(metric2, REPEAT)", (20, 20, 20, 20)),
        ("FILL(none, REPEAT)", (None, None, None, None)),
        ("FILL(none, 0)", (0, 0, 0, 0)),
        ("SUM(FILL([metric2, none], 1))", (21, 2, 21, 2)),
        ("FILL(metric2, LINEAR)", (20, 20, 20, None)),
        ("IF(metric1 < 25, metric1)", (None, 20, 0, 0)),
        ("IF(metric1 > 15, 1, 0)", (1, 1, 0, 0)),
    ],
)  # fmt: skip
def test_time_series(expression: str, expected: Points) -> None:
    assert points(expression) == pytest.approx(expected)


def test_gaps_are_interpolated() -> None:
    gap = {"m": (None, 10, None, None, 40, None)}
    assert points("FILL(m, LINEAR)", gap) == (None, 10, 20, 30, 40, None)
    assert points("FILL(m, REPEAT)", gap) == (None, 10, 10, 10, 40, 40)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        # From the user guide's tables of IF.
        ("IF(metric1, metric2, metric3)", (30, 0, 20, None, None)),
        ("IF(metric1, 5, metric3)", (5, 5, 20, None, None)),
        ("IF(metric1, metric2, 5)", (30, 0, 5, 5, None)),
        ("IF(1, metric2, metric3)", (30, None, 0, 0, 30)),
        ("IF(0, metric2, metric3)", (0, 0, 20, None, 20)),
        ("IF(0, metric2)", (None, None, None, None, None)),
    ],
)
def test_choices(expression: str, expected: Points) -> None:
    assert points(expression, CHOICES) == expected


def test_array_is_a_result_of_its_own() -> None:
    assert isinstance(result("[metric1, metric2]"), SeriesArray)
    assert isinstance(result("METRICS() * 2"), SeriesArray)


def test_expressions_build_on_one_another() -> None:
    metrics = {"errors": Series((1.0, 0.0)), "all": Series((4.0, 5.0))}
    expressions = {"share": parse("errors / all"), "percent": parse("100 * share")}
    results = evaluate(metrics, expressions, period_seconds=60)
    assert results["percent"] == Series((25.0, 0.0))


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "it ends too early"),
        ("metric1 +", "it ends too early"),
        ("(metric1", "`)` is expected, but it ends"),
        ("(metric1]", "`)` is expected, not `]`"),
        ("[metric1,]", "`]` is not expected there"),
        ("metric1 metric2", "`metric2` is not expected there"),
        ("metric1 % 2", "`%` is not expected there"),
        ("metric1; import os", "`;` is not expected there"),
        ("__import__('os')", "`_` is not expected there"),
        ("metric1.real", "`.` is not expected there"),
        ("SUM(metric1))", "`)` is not expected there"),
        (
            "RATE(metric1)",
            "the function RATE is not evaluated; these are: ABS, AVG, CEIL, FILL, FLOOR, IF, MAX, "
            "METRICS, MIN, PERIOD, SUM",
        ),
        (
            "avg(metric1)",
            "the function avg is not evaluated; these are: ABS, AVG, CEIL, FILL, FLOOR, IF, MAX, "
            "METRICS, MIN, PERIOD, SUM",
        ),
        (
            "SEARCH('{AWS/EC2,InstanceId} MetricName=\"x\"', 'Sum')",
            "the function SEARCH is not evaluated; these are: ABS, AVG, CEIL, FILL, FLOOR, IF, "
            "MAX, METRICS, MIN, PERIOD, SUM",
        ),
        ("SELECT AVG(CPUUtilization) FROM x", "Metrics Insights queries are not evaluated"),
        ("SUM(1)", "SUM takes one time series or one array of them"),
        ("SUM(metric1, metric2)", "SUM takes one time series or one array of them"),
        ("ABS(-1)", "ABS takes one time series or one array of them"),
        ("MAX([metric1, 3])", "an array holds time series only"),
        ("MAX([])", "an array holds at least one time series"),
        ('METRICS("x")', 'METRICS("x") finds no metric'),
        ("METRICS(metric1)", "METRICS takes nothing, or one text in quotes"),
        ("PERIOD(1)", "PERIOD takes the Id of one metric"),
        ("FILL(metric1)", "FILL takes a time series and what fills it"),
        ("FILL(1, 2)", "FILL takes a time series and what fills it"),
        ("FILL(metric1, METRICS())", "FILL cannot fill with an array of time series"),
        ("REPEAT", "`REPEAT` is not expected there"),
        ("IF(metric1)", "IF takes a condition, a value and maybe another, none an array"),
        ("IF(METRICS(), 1)", "IF takes a condition, a value and maybe another, none an array"),
        ("IF(1, 2, 3)", "IF with a number as condition chooses between time series"),
        ("METRICS() + METRICS()", "`+` does not join two arrays of time series"),
        ("(" * 300 + "1" + ")" * 300, "it is nested more than 40 deep"),
        ("-" * 300 + "1", "it is nested more than 40 deep"),
        ("1" + "^1" * 300, "it is nested more than 40 deep"),
    ],
)  # fmt: skip
def test_refusals(expression: str, message: str) -> None:
    assert refusal(expression) == message


def test_long_formulas_are_not_deep() -> None:
    assert result("+".join(["1"] * 1000)) == Scalar(1000)
    assert result(" AND ".join(["1"] * 400)) == Scalar(1)


@given(st.text(alphabet='m1+-*/^()<>=,[] .AIFSUME"&|', max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    metrics = {"m": (1, None), "m1": (2, 3)}
    with contextlib.suppress(ExpressionError):
        # An unknown Id is refused before anything is evaluated: see definitions.
        if metrics.keys() >= set(names_in(parse(text))):
            result(text, metrics)


_numbers = st.floats(0.01, 1000).map(lambda number: f"{number:.3f}")


@given(st.recursive(
    _numbers,
    lambda inner: st.tuples(inner, st.sampled_from("+-*/"), inner).map(
        lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"
    ),
    max_leaves=12,
))  # fmt: skip
def test_arithmetic_is_pythons(expression: str) -> None:
    value = result(expression)
    assert isinstance(value, Scalar)
    try:
        expected = eval(expression)  # noqa: S307  # of our own making
    except ZeroDivisionError:
        expected = None
    assert value.value == expected
