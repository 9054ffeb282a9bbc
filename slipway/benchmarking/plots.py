"""Plots of a run as SVG elements of a page: points of two figures, and heat maps."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

from slipway.operations.axis import Axis, axis_to

_WIDTH: Final = 560
_HEIGHT: Final = 320
_LEFT, _RIGHT, _UPPER, _LOWER = 64.0, 540.0, 62.0, 262.0
_KINDS: Final = 4
_LETTER_PIXELS: Final = 7
_ROW_PIXELS, _HEAD_PIXELS = 34.0, 62.0
# Shades beside which a number is still easy to read, in light and in dark.
_LIGHTEST, _DARKEST = 0.06, 0.45

STYLE: Final = """\
.plot .heat { fill: var(--line0) }
.plot .value { fill: var(--ink); text-anchor: middle }
"""
"""CSS of these plots beside that of every page."""


@dataclass(frozen=True)
class Point:
    """A point, with what it is called."""

    x: float
    y: float
    label: str


@dataclass(frozen=True)
class Curve:
    """Points of one kind; a line joins them unless there is one."""

    label: str
    points: tuple[Point, ...]
    is_joined: bool = True


def points_plot(name: str, title: str, x_title: str, y_title: str, curves: Sequence[Curve]) -> str:
    """Returns a plot of one figure against another; both axes begin at zero."""
    points = [point for curve in curves for point in curve.points]
    x_axis = axis_to(max(point.x for point in points) or 1, _LEFT, _RIGHT, most_ticks=6)
    y_axis = axis_to(max(point.y for point in points) or 1, _LOWER, _UPPER, most_ticks=5)
    told = "; ".join(
        f"{curve.label}: "
        + ", ".join(f"{point.y:.3g} at {point.x:.3g} ({point.label})" for point in curve.points)
        for curve in curves
    )
    parts = [
        *_begin(name, f"{title}: {y_title} against {x_title}", told, _HEIGHT),
        _text(12, 18, title, "title"),
        _text(12, 50, y_title),
        _text(_RIGHT, _LOWER + 40, x_title, "end"),
        *_grid(x_axis, y_axis),
        *(_legend(curves) if len(curves) > 1 else ()),
    ]
    for index, curve in enumerate(curves):
        parts += _curve(curve, f"line{index % _KINDS}", x_axis, y_axis)
    return "\n".join([*parts, "</svg>\n"])


def heat_map(
    name: str,
    title: str,
    rows: tuple[str, Sequence[str]],
    columns: tuple[str, Sequence[str]],
    values: Sequence[Sequence[float | None]],
) -> str:
    """Returns a heat map with its numbers.

    Args:
        name: different from other plots on the page.
        title: what the numbers are.
        rows: what they are, and the name of each.
        columns: the same of the columns.
        values: row by row; None where nothing was measured.
    """
    known = [value for row in values for value in row if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    left = 24.0 + _LETTER_PIXELS * max(len(text) for text in (rows[0], *rows[1]))
    width = (_RIGHT - left) / len(columns[1])
    height = _HEAD_PIXELS + _ROW_PIXELS * len(rows[1]) + 12
    told = "; ".join(
        f"{rows[0]} {row}, {columns[0]} {column}: {'none' if value is None else f'{value:.3g}'}"
        for row, line in zip(rows[1], values, strict=True)
        for column, value in zip(columns[1], line, strict=True)
    )
    parts = [
        *_begin(name, title, told, height),
        _text(12, 18, title, "title"),
        _text(left, 38, columns[0]),
        _text(12, _HEAD_PIXELS - 6, rows[0]),
    ]
    for index, column in enumerate(columns[1]):
        parts.append(_text(left + width * (index + 0.5), _HEAD_PIXELS - 6, column, "middle"))
    for line, (row, found) in enumerate(zip(rows[1], values, strict=True)):
        y = _HEAD_PIXELS + _ROW_PIXELS * line
        parts.append(_text(12, y + 21, row))
        for index, value in enumerate(found):
            share = 0.0 if value is None or high == low else (value - low) / (high - low)
            shade = 0.0 if value is None else _LIGHTEST + (_DARKEST - _LIGHTEST) * share
            x = left + width * index
            parts.append(
                f'<rect class="heat" fill-opacity="{shade:.3f}" x="{x + 1:.1f}" y="{y + 1:.1f}" '
                f'width="{width - 2:.1f}" height="{_ROW_PIXELS - 2:.1f}"/>'
            )
            shown = "-" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
            parts.append(_text(x + width / 2, y + 21, shown, "value"))
    return "\n".join([*parts, "</svg>\n"])


def _begin(name: str, title: str, told: str, height: float) -> Iterator[str]:
    yield (
        f'<svg class="plot" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'width="{_WIDTH}" height="{height:g}" viewBox="0 0 {_WIDTH} {height:g}">'
    )
    yield f'<title id="{name}-title">{escape(title)}</title>'
    yield f'<desc id="{name}-desc">{escape(told)}</desc>'


def _grid(x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    for value, label in y_axis.ticks():
        y, kind = y_axis.at(value), "" if value else ' class="axis"'
        yield f'<line{kind} x1="{_LEFT:g}" x2="{_RIGHT:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield _text(_LEFT - 8, y + 4, label, "end")
    for value, label in x_axis.ticks():
        x, kind = x_axis.at(value), "" if value else ' class="axis"'
        yield f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{_LOWER:g}" y2="{_UPPER:g}"/>'
        yield _text(x, _LOWER + 17, label, "middle")


def _legend(curves: Sequence[Curve]) -> Iterator[str]:
    x = 12.0
    for index, curve in enumerate(curves):
        kind = f"line line{index % _KINDS}"
        yield f'<line class="{kind}" x1="{x:g}" x2="{x + 20:g}" y1="30" y2="30"/>'
        yield _text(x + 26, 34, curve.label)
        x += 44 + _LETTER_PIXELS * len(curve.label)


def _curve(curve: Curve, kind: str, x_axis: Axis, y_axis: Axis) -> Iterator[str]:
    places = [(x_axis.at(point.x), y_axis.at(point.y), point.label) for point in curve.points]
    if curve.is_joined and len(places) > 1:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        yield f'<polyline class="line {kind}" points="{corners}"/>'
    taken: list[tuple[float, float]] = []
    for x, y, label in places:
        yield (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
            f"<title>{escape(curve.label)}: {escape(label)}</title></circle>"
        )
        # A label that would cover another one is left out; it is in the point's title.
        if curve.is_joined and all(abs(x - a) > 26 or abs(y - b) > 14 for a, b in taken):
            taken.append((x, y))
            end = x > _RIGHT - 40
            yield _text(x - 7 if end else x + 7, y - 7, label, "end" if end else "")


def _text(x: float, y: float, words: str, kind: str = "") -> str:
    classed = f' class="{kind}"' if kind else ""
    return f'<text{classed} x="{x:.5g}" y="{y:.5g}">{escape(words)}</text>'
