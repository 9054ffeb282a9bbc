"""The value of a formula, over the periods that an alarm evaluates.

Missing points: suppose that a time series has no point at a time at which another series has one.
It then counts as 0 in arithmetic, in comparisons, and in SUM and AVG over several series. If no
series has a point at that time, there is no result either. A division by zero drops the point, and
so does any result that is not a finite number. Rules:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
"""

import itertools
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from embedded_aws.monitoring.expressions import (
    Array,
    Call,
    Chain,
    ExpressionError,
    Name,
    Negation,
    Node,
    Number,
    Word,
)

Point = float | None


@dataclass(frozen=True)
class Scalar:
    """One number for all times; None if its computation was dropped."""

    value: Point


@dataclass(frozen=True)
class Series:
    """One point per period, oldest first; None for a missing point."""

    points: tuple[Point, ...]


@dataclass(frozen=True)
class SeriesArray:
    """Several time series."""

    items: tuple[Series, ...]


Value = Scalar | Series | SeriesArray


def evaluate(
    metrics: Mapping[str, Series], expressions: Mapping[str, Node], *, period_seconds: int
) -> dict[str, Value]:
    """Computes every expression.

    Args:
        metrics: maps an Id to data points, all of the same length.
        expressions: maps an Id to its formula; a formula comes after the formulas that it refers
            to.
        period_seconds: period of the metrics.

    Returns:
        Maps every Id to its value, the metrics included.

    Raises:
        ExpressionError: an operator or a function does not accept its operands. That depends on the
            formulas only, never on the data.
    """
    math_ = _Math(metrics, period_seconds)
    for identifier, node in expressions.items():
        try:
            math_.results[identifier] = math_.value(node)
        except ExpressionError as error:
            raise ExpressionError(f'"{identifier}": {error}') from None
    return math_.results


class _Math:
    def __init__(self, metrics: Mapping[str, Series], period_seconds: int) -> None:
        self.results: dict[str, Value] = dict(metrics)
        self._metrics = metrics
        self._period_seconds = period_seconds

    def value(self, node: Node) -> Value:
        """Computes one formula."""
        match node:
            case Number(number):
                return Scalar(number)
            case Name(identifier):
                return self.results[identifier]
            case Word(text):
                raise ExpressionError(f"`{text}` is not expected there")
            case Negation(operand):
                return _each(operator.neg, self.value(operand))
            case Chain(first, rest):
                result = self.value(first)
                for sign, operand in rest:
                    result = _combine(sign, result, self.value(operand))
                return result
            case Array(items):
                return _array([self.value(item) for item in items])
            case Call(function, arguments):
                return self._call(function, arguments)

    def _call(self, function: str, arguments: tuple[Node, ...]) -> Value:
        if function == "METRICS":
            return self._all_metrics(arguments)
        if function == "PERIOD":
            match arguments:
                case (Name(identifier),) if identifier in self._metrics:
                    return Scalar(float(self._period_seconds))
            raise ExpressionError("PERIOD takes the Id of one metric")
        if function == "FILL":
            return self._fill(arguments)
        values = [self.value(argument) for argument in arguments]
        if function == "IF":
            return _if(values)
        if len(values) != 1 or isinstance(values[0], Scalar):
            raise ExpressionError(f"{function} takes one time series or one array of them")
        if function in _EACH:
            return _each(_EACH[function], values[0])
        return _aggregate(function, values[0])

    def _all_metrics(self, arguments: tuple[Node, ...]) -> SeriesArray:
        match arguments:
            case ():
                part = ""
            case (Word(text),):
                part = text
            case _:
                raise ExpressionError("METRICS takes nothing, or one text in quotes")
        found = tuple(series for name, series in self._metrics.items() if part in name)
        if not found:
            raise ExpressionError(f'METRICS("{part}") finds no metric')
        return SeriesArray(found)

    def _fill(self, arguments: tuple[Node, ...]) -> Value:
        if len(arguments) != 2:
            raise ExpressionError("FILL takes a time series and what fills it")
        target = self.value(arguments[0])
        match arguments[1]:
            case Word("REPEAT"):
                fill = _repeated
            case Word("LINEAR"):
                fill = _interpolated
            case other:
                filler = self.value(other)
                if isinstance(filler, SeriesArray):
                    raise ExpressionError("FILL cannot fill with an array of time series")

                def fill(points: Sequence[Point]) -> list[Point]:
                    others = _spread(filler, len(points))
                    return [o if p is None else p for p, o in zip(points, others, strict=True)]

        match target:
            case Series(points):
                return Series(tuple(fill(points)))
            case SeriesArray(items):
                return SeriesArray(tuple(Series(tuple(fill(item.points))) for item in items))
        raise ExpressionError("FILL takes a time series and what fills it")


def _array(values: Sequence[Value]) -> SeriesArray:
    items: list[Series] = []
    for value in values:
        match value:
            case Series():
                items.append(value)
            case SeriesArray(inner):
                items.extend(inner)
            case Scalar():
                raise ExpressionError("an array holds time series only")
    if not items:
        raise ExpressionError("an array holds at least one time series")
    return SeriesArray(tuple(items))


def _each(function: Callable[[float], float], value: Value) -> Value:
    match value:
        case Scalar(number):
            return Scalar(None if number is None else function(number))
        case Series(points):
            return Series(tuple(None if p is None else function(p) for p in points))
        case SeriesArray(items):
            return SeriesArray(tuple(_series(_each(function, item)) for item in items))


def _combine(sign: str, left: Value, right: Value) -> Value:
    function = _OPERATORS[sign]
    match left, right:
        case SeriesArray(), SeriesArray():
            raise ExpressionError(f"`{sign}` does not join two arrays of time series")
        case SeriesArray(items), _:
            return SeriesArray(tuple(_series(_combine(sign, item, right)) for item in items))
        case _, SeriesArray(items):
            return SeriesArray(tuple(_series(_combine(sign, left, item)) for item in items))
        case Scalar(a), Scalar(b):
            return Scalar(_applied(function, a, b))
        case Series(points), Scalar(b):
            return Series(tuple(_applied(function, p, b) for p in points))
        case Scalar(a), Series(points):
            return Series(tuple(_applied(function, a, p) for p in points))
        case Series(points), Series(others):
            return Series(
                tuple(_union(function, a, b) for a, b in zip(points, others, strict=True))
            )
    raise TypeError(f"{left} {sign} {right}")


def _applied(function: Callable[[float, float], Point], a: Point, b: Point) -> Point:
    if a is None or b is None:
        return None
    try:
        result = function(a, b)
    except (OverflowError, ZeroDivisionError):
        return None
    # A power may be a complex number.
    return None if isinstance(result, complex) or result is None else _finite(result)


def _finite(number: float) -> Point:
    return number if math.isfinite(number) else None


def _union(function: Callable[[float, float], Point], a: Point, b: Point) -> Point:
    if a is None and b is None:
        return None
    return _applied(function, a or 0.0, b or 0.0)


def _aggregate(function: str, value: Series | SeriesArray) -> Value:
    """Returns a number for one series, aggregated over time; a series for several series."""
    aggregate = _AGGREGATES[function]
    if isinstance(value, Series):
        return Scalar(aggregate(value.points))
    columns = zip(*(item.points for item in value.items), strict=True)
    return Series(tuple(aggregate(column) for column in columns))


def _sum(points: Sequence[Point]) -> Point:
    existing = [p for p in points if p is not None]
    return _finite(sum(existing)) if existing else None


def _average(points: Sequence[Point]) -> Point:
    # Missing values count as 0, as documented.
    total = _sum(points)
    return None if total is None else total / len(points)


def _if(values: Sequence[Value]) -> Series:
    if not 2 <= len(values) <= 3 or any(isinstance(value, SeriesArray) for value in values):
        raise ExpressionError("IF takes a condition, a value and maybe another, none an array")
    condition, chosen, *rest = values
    otherwise = rest[0] if rest else Scalar(None)
    if isinstance(condition, Scalar):
        if not isinstance(chosen, Series) or (rest and not isinstance(otherwise, Series)):
            raise ExpressionError("IF with a number as condition chooses between time series")
        length = len(chosen.points)
        return Series(_spread(chosen if condition.value else otherwise, length))
    points = _series(condition).points
    return Series(
        tuple(
            # If the series is chosen, a missing point counts as 0; otherwise it stays missing.
            None if point is None else (yes or 0.0) if point else no
            for point, yes, no in zip(
                points,
                _spread(chosen, len(points)),
                _spread(otherwise, len(points)),
                strict=True,
            )
        )
    )


def _repeated(points: Sequence[Point]) -> list[Point]:
    filled: list[Point] = []
    for point in points:
        filled.append(filled[-1] if point is None and filled else point)
    return filled


def _interpolated(points: Sequence[Point]) -> list[Point]:
    filled = list(points)
    known = [index for index, point in enumerate(points) if point is not None]
    for left, right in itertools.pairwise(known):
        low, high = points[left], points[right]
        if low is not None and high is not None:
            step = (high - low) / (right - left)
            filled[left:right] = [low + step * offset for offset in range(right - left)]
    return filled


def _spread(value: Value, length: int) -> tuple[Point, ...]:
    return (value.value,) * length if isinstance(value, Scalar) else _series(value).points


def _series(value: Value) -> Series:
    if not isinstance(value, Series):
        raise TypeError(f"not a time series: {value}")
    return value


_OPERATORS: Mapping[str, Callable[[float, float], Point]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "^": operator.pow,
    "==": lambda a, b: float(a == b),
    "!=": lambda a, b: float(a != b),
    "<": lambda a, b: float(a < b),
    "<=": lambda a, b: float(a <= b),
    ">": lambda a, b: float(a > b),
    ">=": lambda a, b: float(a >= b),
    "AND": lambda a, b: float(bool(a) and bool(b)),
    "OR": lambda a, b: float(bool(a) or bool(b)),
}
_EACH: Mapping[str, Callable[[float], float]] = {
    "ABS": abs,
    "CEIL": lambda value: float(math.ceil(value)),
    "FLOOR": lambda value: float(math.floor(value)),
}
_AGGREGATES: Mapping[str, Callable[[Sequence[Point]], Point]] = {
    "SUM": _sum,
    "AVG": _average,
    "MIN": lambda points: min((p for p in points if p is not None), default=None),
    "MAX": lambda points: max((p for p in points if p is not None), default=None),
}
