"""The ways of arrows: from one side of a box to a side of another, with right angles."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tools.pictures.kit.canvas import Rect, number

Side = Literal["left", "right", "top", "bottom"]
Point = tuple[float, float]
OPPOSITE: dict[Side, Side] = {"left": "right", "right": "left", "top": "bottom", "bottom": "top"}
_OUT: dict[Side, Point] = {"left": (-1, 0), "right": (1, 0), "top": (0, -1), "bottom": (0, 1)}
_CORNER = 6
_HEAD = 7


@dataclass(frozen=True)
class Way:
    """How an arrow goes.

    Args:
        leave: the side of its first box; None chooses by where the boxes are.
        enter: the side of its last box; None chooses.
        leave_shift: pixels from the middle of that side, to the right or down.
        enter_shift: the same at the last box.
        bend: pixels from the edge of the first box to the bend of an arrow with two corners; None
            puts it in the middle. For an arrow that enters by the side that it left by, pixels
            beyond the farther box.
    """

    leave: Side | None = None
    enter: Side | None = None
    leave_shift: float = 0
    enter_shift: float = 0
    bend: float | None = None


def sides(source: Rect, target: Rect, way: Way) -> tuple[Side, Side]:
    """Returns the sides that an arrow leaves and enters by."""
    leave = way.leave or _facing(source, target)
    return leave, way.enter or OPPOSITE[leave]


def points(source: Rect, target: Rect, way: Way) -> list[Point]:
    """Returns the corners of an arrow, with its ends."""
    leave, enter = sides(source, target, way)
    if leave == OPPOSITE[enter] and not (way.leave_shift or way.enter_shift):
        straight = _straight(source, target, leave)
        if straight is not None:
            return straight
    start = _port(source, leave, way.leave_shift)
    end = _port(target, enter, way.enter_shift)
    if _upright(leave) != _upright(enter):
        return [start, (start[0], end[1]) if _upright(leave) else (end[0], start[1]), end]
    if leave == enter:
        reach = 24 if way.bend is None else way.bend
        far = _far(source, target, leave, reach)
    elif way.bend is None:
        far = (start[1] + end[1]) / 2 if _upright(leave) else (start[0] + end[0]) / 2
    else:
        out = _OUT[leave]
        far = start[1] + out[1] * way.bend if _upright(leave) else start[0] + out[0] * way.bend
    if _upright(leave):
        return _without_repeats([start, (start[0], far), (end[0], far), end])
    return _without_repeats([start, (far, start[1]), (far, end[1]), end])


def path(corners: list[Point]) -> str:
    """Returns SVG's path data of a line with rounded corners, which ends before its head."""
    *middle, last = corners
    before = middle[-1]
    length = _length(before, last)
    stop = _between(last, before, min(_HEAD - 1, length))
    parts = [f"M{_xy(corners[0])}"]
    for index in range(1, len(corners) - 1):
        corner = corners[index]
        next_one = stop if index == len(corners) - 2 else corners[index + 1]
        radius = min(
            _CORNER, _length(corners[index - 1], corner) / 2, _length(corner, next_one) / 2
        )
        parts.append(f"L{_xy(_between(corner, corners[index - 1], radius))}")
        parts.append(f"Q{_xy(corner)} {_xy(_between(corner, next_one, radius))}")
    parts.append(f"L{_xy(stop)}")
    return "".join(parts)


def head(corners: list[Point]) -> str:
    """Returns SVG's path data of the triangle at an arrow's end."""
    before, tip = corners[-2], corners[-1]
    length = _length(before, tip) or 1
    ahead = ((tip[0] - before[0]) / length, (tip[1] - before[1]) / length)
    base = (tip[0] - ahead[0] * _HEAD, tip[1] - ahead[1] * _HEAD)
    aside = (-ahead[1] * _HEAD * 0.5, ahead[0] * _HEAD * 0.5)
    one, other = (base[0] + aside[0], base[1] + aside[1]), (base[0] - aside[0], base[1] - aside[1])
    return f"M{_xy(tip)}L{_xy(one)}L{_xy(other)}Z"


def segments(corners: list[Point]) -> list[Rect]:
    """Returns the straight parts of an arrow as thin places."""
    return [
        Rect(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1])).grown(1.5)
        for a, b in pairwise(corners)
    ]


def longest(corners: list[Point]) -> tuple[Point, Point]:
    """Returns the ends of an arrow's longest straight part, where a label has most room."""
    return max(pairwise(corners), key=lambda ends: _length(*ends))


def _facing(source: Rect, target: Rect) -> Side:
    if source.right <= target.left:
        return "right"
    if target.right <= source.left:
        return "left"
    return "bottom" if source.centre[1] <= target.centre[1] else "top"


def _upright(side: Side) -> bool:
    return side in ("top", "bottom")


def _port(box: Rect, side: Side, shift: float) -> Point:
    x, y = box.centre
    if _upright(side):
        return x + shift, box.top if side == "top" else box.bottom
    return box.left if side == "left" else box.right, y + shift


def _straight(source: Rect, target: Rect, leave: Side) -> list[Point] | None:
    """Returns a straight arrow where the boxes face each other; None where they do not."""
    if _upright(leave):
        low, high = max(source.left, target.left), min(source.right, target.right)
        if high - low < 2 * _CORNER:
            return None
        x = _shared(source.centre[0], target.centre[0], low, high)
        enter = OPPOSITE[leave]
        return [(x, _port(source, leave, 0)[1]), (x, _port(target, enter, 0)[1])]
    low, high = max(source.top, target.top), min(source.bottom, target.bottom)
    if high - low < 2 * _CORNER:
        return None
    y = _shared(source.centre[1], target.centre[1], low, high)
    return [(_port(source, leave, 0)[0], y), (_port(target, OPPOSITE[leave], 0)[0], y)]


def _shared(one: float, other: float, low: float, high: float) -> float:
    """Returns a middle of the two boxes that both have; else the middle of what they share."""
    for middle in (one, other):
        if abs((low + high) / 2 - middle) < _CORNER:
            return middle
    return (low + high) / 2


def _far(source: Rect, target: Rect, side: Side, reach: float) -> float:
    ends = {
        "top": min(source.top, target.top) - reach,
        "bottom": max(source.bottom, target.bottom) + reach,
        "left": min(source.left, target.left) - reach,
        "right": max(source.right, target.right) + reach,
    }
    return ends[side]


def _without_repeats(corners: list[Point]) -> list[Point]:
    kept = corners[:1]
    for corner in corners[1:]:
        if _length(kept[-1], corner) > 0.01:
            kept.append(corner)
    return kept


def _length(one: Point, other: Point) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])


def _between(one: Point, other: Point, distance: float) -> Point:
    """Returns the point at a distance from one point towards another."""
    length = _length(one, other) or 1
    share = distance / length
    return one[0] + (other[0] - one[0]) * share, one[1] + (other[1] - one[1]) * share


def _xy(point: Point) -> str:
    return f"{number(point[0])} {number(point[1])}"
