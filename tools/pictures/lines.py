"""A plot of lines: panels in two columns, each with series of values at a few numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.report import significant
from slipway.operations.plots import Axis, axis_to
from tools.pictures.drawing import (
    MARGIN,
    WIDTH,
    circle,
    classed,
    interval,
    line,
    number,
    plot,
    text,
)

_GAP = 26
_HEIGHT = 190  # of the axis
_LABEL_HEIGHT = 15


@dataclass(frozen=True)
class Value:
    """A measured value at a number; without an interval, its ends are the middle.

    Numbers stand at equal distances.
    """

    number: int
    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Series:
    """A line, with a label at its end; a line break in it begins a line.

    The classes are `accent` for the line that the plot is about, and `dashed` for one of two.
    """

    label: str
    values: Sequence[Value]
    classes: str


def lines_picture(
    title: str,
    description: str,
    panels: Mapping[str, Sequence[Series]],
    *,
    unit: str,
    numbers_title: str,
    label_width: float,
    note: str,
    is_one_axis: bool = False,
) -> str:
    """Returns the picture, with two panels a row, which have the series by the title of the panel.

    Title and description are for screen readers, which hear the values after them. With one axis,
    the axes of all panels end at the same value.
    """
    greatests = [
        max(each.high for one in series for each in one.values) for series in panels.values()
    ]
    width = (WIDTH - 2 * MARGIN - _GAP) / 2
    parts, top = list[str](), float(MARGIN)
    for index, (panel, series) in enumerate(panels.items()):
        left = MARGIN + index % 2 * (width + _GAP)
        parts.append(text(left, top + 12, panel, "title"))
        parts.append(text(left, top + 32, unit, "small soft"))
        greatest = max(greatests) if is_one_axis else greatests[index]
        upper = top + 48
        parts += _panel(series, greatest, numbers_title, left, left + width - label_width, upper)
        if index % 2:
            top += 48 + _HEIGHT + 40 + _GAP
    values = " ".join(
        f"{panel}: {one.label}: "
        + ", ".join(f"{significant(each.value)} at {each.number}" for each in one.values)
        + "."
        for panel, series in panels.items()
        for one in series
    )
    return plot(title, f"{description} {values}", parts, note, top - _GAP + 12)


def _panel(
    series: Sequence[Series],
    greatest: float,
    numbers_title: str,
    left: float,
    right: float,
    upper: float,
) -> list[str]:
    """Returns the axes, the lines and their labels; `upper` is the upper end of the axis."""
    lower = upper + _HEIGHT
    parts = list[str]()
    axis = axis_to(greatest, lower, upper, most_ticks=5)
    left += 8 + 7.2 * max(len(label) for _, label in axis.ticks())
    for value, label in axis.ticks():
        y = axis.at(value)
        parts.append(line((left, y), (right, y), "thin grid" if value else "thin"))
        parts.append(text(left - 8, y + 4, label, "small soft end"))
    numbers = sorted({each.number for one in series for each in one.values})
    step = (right - left - 28) / (len(numbers) - 1)
    places = {each: left + 14 + step * index for index, each in enumerate(numbers)}
    parts += [text(x, lower + 18, str(each), "small soft middle") for each, x in places.items()]
    parts.append(text((left + right) / 2, lower + 36, numbers_title, "small soft middle"))
    for one in sorted(series, key=lambda each: "accent" in each.classes):
        parts += _series(one, places, axis)
    return parts + _labels(series, axis, right + 10)


def _series(series: Series, places: Mapping[int, float], axis: Axis) -> list[str]:
    colour = "accent" if "accent" in series.classes else ""
    points = [(places[each.number], axis.at(each.value)) for each in series.values]
    corners = " ".join(f"{number(x)},{number(y)}" for x, y in points)
    parts = [f'<polyline{classed("line thick", series.classes)} points="{corners}"/>']
    for value, (x, y) in zip(series.values, points, strict=True):
        if value.low < value.high:
            ends = (x, axis.at(value.low)), (x, axis.at(value.high))
            parts += interval(*ends, 3, f"thin {colour}".rstrip())
        parts.append(circle((x, y), 3.5, colour))
    return parts


def _labels(series: Sequence[Series], axis: Axis, left: float) -> list[str]:
    """Returns each series' label beside its last value, moved so that none overlap."""
    ends = sorted(series, key=lambda each: axis.at(each.values[-1].value))
    heights = [_LABEL_HEIGHT * (each.label.count("\n") + 1) for each in ends]
    tops = list[float]()
    lowest = axis.end_pixel - 12
    for each, height in zip(ends, heights, strict=True):
        tops.append(max(axis.at(each.values[-1].value) - height / 2, lowest))
        lowest = tops[-1] + height + 3
    # A label that was pushed below the axis goes up again, and pushes the others.
    floor = axis.start_pixel + 6
    for index in reversed(range(len(ends))):
        tops[index] = min(tops[index], floor - heights[index])
        floor = tops[index] - 3
    return [
        text(
            left,
            top + 11.5 + index * _LABEL_HEIGHT,
            words,
            f"label {'accent' if 'accent' in each.classes else 'soft'}",
        )
        for each, top in zip(ends, tops, strict=True)
        for index, words in enumerate(each.label.split("\n"))
    ]
