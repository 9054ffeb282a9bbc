"""Metric math: reads a formula, and computes it over the periods that an alarm evaluates.

Only what Slipway's stacks have in their alarms is evaluated: numbers, Ids, `+ - * /`, parentheses,
and `MAX` of an array. Everything else is refused by name. Syntax and rules:
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html

Missing points: where one time series has a point and another has none, the missing point counts as
0 in arithmetic. If no series has a point at that time, there is no result either. A division by
zero drops the point, and so does any result that is not a finite number.
"""

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

# One point per period, oldest first; None for a missing point.
Point = float | None
Series = tuple[Point, ...]

_NUMBER = re.compile(r"\d+\.?\d*|\.\d+", re.ASCII)
_WORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_TOKEN = re.compile(rf"{_NUMBER.pattern}|{_WORD.pattern}|[=!<>&|]+|\S", re.ASCII)
# Longer than any useful formula, and too short for Python's recursion limit.
_MAX_TOKENS = 200
_SUM: Mapping[str, Callable[[float, float], float]] = {"+": operator.add, "-": operator.sub}
_PRODUCT: Mapping[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": operator.truediv,
}


class FormulaError(Exception):
    """A formula is wrong, or not evaluated here; the message is a sentence without the formula."""


@dataclass(frozen=True)
class Operation:
    function: Callable[[float, float], float]
    left: "Formula"
    right: "Formula"


@dataclass(frozen=True)
class Highest:
    """`MAX([a, b])`: the highest of the points that are there."""

    items: "tuple[Formula, ...]"


# A text is the Id of a metric or of another formula.
Formula = float | str | Operation | Highest


def parse(text: str) -> Formula:
    """Parses a formula, which gives a time series; raises `FormulaError`."""
    tokens = _TOKEN.findall(text)
    if len(tokens) > _MAX_TOKENS:
        raise FormulaError(f"it has more than {_MAX_TOKENS} numbers, names and signs")
    parser = _Parser(tokens)
    formula = parser.sum()
    parser.expect("")
    if not names_in(formula):
        raise FormulaError("it names no metric")
    return formula


def names_in(formula: Formula) -> frozenset[str]:
    return frozenset(_names(formula))


def compute(formula: Formula, results: Mapping[str, Series]) -> Series:
    """Computes a formula over the series of its Ids, which all have the same length."""
    length = len(next(iter(results.values())))
    return tuple(
        _point(formula, {name: series[index] for name, series in results.items()})
        for index in range(length)
    )


class _Parser:
    """A recursive-descent parser; the text ends with empty tokens."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = [*tokens, ""]
        self._position = 0

    def sum(self) -> Formula:
        return self._joined(_SUM, self._product)

    def expect(self, sign: str) -> None:
        if self._ahead != sign:
            raise self._unexpected()
        self._read()

    def _product(self) -> Formula:
        return self._joined(_PRODUCT, self._operand)

    def _joined(
        self,
        functions: Mapping[str, Callable[[float, float], float]],
        operand: Callable[[], Formula],
    ) -> Formula:
        formula = operand()
        while self._ahead in functions:
            formula = Operation(functions[self._read()], formula, operand())
        return formula

    def _operand(self) -> Formula:
        ahead = self._ahead
        if ahead == "(":
            self._read()
            inner = self.sum()
            self.expect(")")
            return inner
        if _NUMBER.fullmatch(ahead):
            return float(self._read())
        if _WORD.fullmatch(ahead) and self._tokens[self._position + 1] == "(":
            return self._call()
        if _WORD.fullmatch(ahead) and ahead[0].islower():
            return self._read()
        raise self._unexpected()

    def _call(self) -> Formula:
        if (function := self._read()) != "MAX":
            raise FormulaError(f"the function {function} is not evaluated; only MAX([a, b]) is")
        for sign in "([":
            self.expect(sign)
        items = [self.sum()]
        while self._ahead == ",":
            self._read()
            items.append(self.sum())
        for sign in "])":
            self.expect(sign)
        if not all(map(names_in, items)):
            raise FormulaError("an array holds time series only")
        return Highest(tuple(items))

    @property
    def _ahead(self) -> str:
        return self._tokens[self._position]

    def _read(self) -> str:
        self._position += 1
        return self._tokens[self._position - 1]

    def _unexpected(self) -> FormulaError:
        if not self._ahead:
            return FormulaError("it ends too early")
        return FormulaError(
            f"`{self._ahead}` is not evaluated there; a formula has numbers, Ids, + - * /, "
            "parentheses and MAX([a, b])"
        )


def _names(formula: Formula) -> Iterator[str]:
    match formula:
        case str():
            yield formula
        case Operation(_, left, right):
            yield from (*_names(left), *_names(right))
        case Highest(items):
            for item in items:
                yield from _names(item)


def _point(formula: Formula, points: Mapping[str, Point]) -> Point:
    match formula:
        case str():
            return points[formula]
        case Highest(items):
            found = [_point(item, points) for item in items]
            return max((point for point in found if point is not None), default=None)
        case Operation(function, left, right):
            a, b = _point(left, points), _point(right, points)
            if a is None and b is None:
                return None
            if (a is None or b is None) and not (names_in(left) and names_in(right)):
                return None  # beside a number, a missing point stays missing
            return _finite(function, a or 0.0, b or 0.0)
        case number:
            return number


def _finite(function: Callable[[float, float], float], a: float, b: float) -> Point:
    try:
        result = function(a, b)
    except (OverflowError, ZeroDivisionError):
        return None
    return result if math.isfinite(result) else None
