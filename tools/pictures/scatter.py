"""A plot of predicted against measured values, on logarithmic axes: two panels side by side."""

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tools.pictures.drawing import MARGIN, WIDTH, circle, line, plot, text

_GAP, _SIDE = 26, 300
_TICKS = (1, 2, 5, 10, 20, 50)
_LEAST, _MOST = 0.6, 70.0


class Point(NamedTuple):
    """A row: what was measured, what was predicted, and of what."""

    measured: float
    predicted: float
    name: str


def scatter_picture(
    title: str,
    description: str,
    panels: Mapping[str, Sequence[Point]],
    *,
    x_title: str,
    y_title: str,
    note: str,
    limits: Sequence[float],
) -> str:
    """Returns the picture of two panels, by their titles.

    `limits` has the relative error that dashed lines show in each panel.
    """
    parts, told = list[str](), [description]
    top = MARGIN + 48.0
    for index, (panel, points) in enumerate(panels.items()):
        left = MARGIN + 34 + index * ((WIDTH - 2 * MARGIN - _GAP) / 2 + _GAP)
        parts.append(text(left - 34, MARGIN + 12, panel, "title"))
        parts.append(text(left - 34, MARGIN + 32, y_title, "small soft"))
        parts += _axes(left, top, x_title)
        parts += _diagonals(left, top, limits[index])
        for point in points:
            parts.append(circle(_place(left, top, point.measured, point.predicted), 3, "accent"))
        for name in dict.fromkeys(point.name for point in points):
            own = [each.predicted / each.measured - 1 for each in points if each.name == name]
            told.append(
                f"{name}: {len(own)} rows, {100 * min(own):+.0f} to {100 * max(own):+.0f} %."
            )
    return plot(title, " ".join(told), parts, note, top + _SIDE + 48)


def _at(value: float) -> float:
    return _SIDE * math.log(value / _LEAST) / math.log(_MOST / _LEAST)


def _place(left: float, top: float, x: float, y: float) -> tuple[float, float]:
    return left + _at(x), top + _SIDE - _at(y)


def _axes(left: float, top: float, x_title: str) -> list[str]:
    lower, right = top + _SIDE, left + _SIDE
    parts = [line((left, lower), (right, lower), "thin"), line((left, top), (left, lower), "thin")]
    for tick in _TICKS:
        x, y = _place(left, top, tick, tick)
        parts += [
            line((x, top), (x, lower), "thin grid"),
            line((left, y), (right, y), "thin grid"),
            text(x, lower + 18, str(tick), "small soft middle"),
            text(left - 8, y + 4, str(tick), "small soft end"),
        ]
    return [*parts, text((left + right) / 2, lower + 38, x_title, "small soft middle")]


def _diagonals(left: float, top: float, limit: float) -> list[str]:
    parts = []
    for factor, classes in ((1.0, "thin"), (1 - limit, "thin dashed"), (1 + limit, "thin dashed")):
        start = max(_LEAST, _LEAST / factor)
        end = min(_MOST, _MOST / factor)
        ends = (_place(left, top, each, each * factor) for each in (start, end))
        parts.append(line(next(ends), next(ends), classes))
    return parts
