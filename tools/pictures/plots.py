"""The plots of the benchmarks' committed results, which plots.yaml describes."""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jmespath
import yaml

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

_ROOT = Path(__file__).parents[2]
_GAP = 26  # between two columns of panels
_ROW, _BAR, _GROUP_GAP, _PANEL_GAP = 26, 14, 10, 30
_LINES_HEIGHT, _LABEL_HEIGHT = 190, 15
# The logarithmic axes of predicted and measured seconds.
_SIDE, _LEAST, _MOST = 300, 0.6, 70.0
_TICKS = (1, 2, 5, 10, 20, 50)

# Any: YAML.
Words = Mapping[str, Any]


def plots() -> dict[str, str]:
    """Returns each plot as an SVG document, by the name of its file without the ending."""
    described = yaml.safe_load(Path(__file__).with_name("plots.yaml").read_text("utf-8"))
    return {name: _drawn(words) for name, words in described.items()}


def _drawn(words: Words) -> str:
    results = json.loads((_ROOT / words["results"]).read_text("utf-8"))

    def found(cells: str, columns: str) -> list[list[Any]]:
        rows: list[list[Any]] = jmespath.search(f"{cells} | [*].[{columns}]", results)
        return rows

    def named(title: str) -> str:
        told = title.format(**results)
        return told[:1].upper() + told[1:]

    words = {**words, "title": words["title"].format(**results)}
    kind, panels = words["kind"], words["panels"]
    if kind == "scatter":
        points = [found(panel["cells"], words["columns"]) for panel in panels]
        return scatter_picture(words, points)
    if kind == "lines":
        lines: dict[str, list[Series]] = {}
        for panel in panels:
            series = list[Series]()
            for label, classes, which in panel["series"]:
                rows = found(f"{panel['cells']} | [?{which}]", words["columns"])
                series.append(Series(label, classes, [Value(*row) for row in rows]))
            lines[named(panel["title"])] = series
        return lines_picture(words, lines)
    bars = []
    for panel in panels:
        goal = jmespath.search(panel["goal"], results) if "goal" in panel else None
        groups = {}
        for title, cells in panel["groups"].items():
            rows = found(cells, panel["columns"])
            groups[named(title)] = [_row(words, goal, *row) for row in rows]
        marked = (goal, f"{panel['goal_text']} {goal:g}") if goal else None
        bars.append(Panel(panel["title"], panel["unit"], groups, marked))
    return bars_picture(words, bars)


class Value(NamedTuple):
    """A measured value at a number; without an interval, its ends are the middle.

    Numbers stand at equal distances.
    """

    number: int
    value: float
    low: float
    high: float


class Series(NamedTuple):
    """A line, with a label at its end; a line break in it begins a line.

    The classes are `accent` for the line that the plot is about, and `dashed` for one of two.
    """

    label: str
    classes: str
    values: Sequence[Value]


def lines_picture(words: Words, panels: Mapping[str, Sequence[Series]]) -> str:
    """Returns a plot of lines, with two panels a row, which have the series by the panel's title.

    Screen readers hear the values after the description. With `is_one_axis`, the axes of all panels
    end at the same value.
    """
    greatests = [
        max(each.high for one in series for each in one.values) for series in panels.values()
    ]
    width = (WIDTH - 2 * MARGIN - _GAP) / 2
    parts, told, top = list[str](), [words["description"]], float(MARGIN)
    for index, (panel, series) in enumerate(panels.items()):
        left = MARGIN + index % 2 * (width + _GAP)
        parts.append(text(left, top + 12, panel, "title"))
        parts.append(text(left, top + 32, words["unit"], "small soft"))
        greatest = max(greatests) if words.get("is_one_axis") else greatests[index]
        right = left + width - words["label_width"]
        parts += _lines_panel(series, greatest, words["numbers_title"], left, right, top + 48)
        if index % 2:
            top += 48 + _LINES_HEIGHT + 40 + _GAP
        for one in series:
            values = (f"{significant(each.value)} at {each.number}" for each in one.values)
            told.append(f"{panel}: {one.label}: {', '.join(values)}.")
    return plot(words["title"], " ".join(told), parts, words["note"], top - _GAP + 12)


def _lines_panel(
    series: Sequence[Series],
    greatest: float,
    numbers_title: str,
    left: float,
    right: float,
    upper: float,
) -> list[str]:
    """Returns the axes, the lines and their labels; `upper` is the upper end of the axis."""
    lower = upper + _LINES_HEIGHT
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
        colour = "accent" if "accent" in one.classes else ""
        points = [(places[each.number], axis.at(each.value)) for each in one.values]
        corners = " ".join(f"{number(x)},{number(y)}" for x, y in points)
        parts.append(f'<polyline{classed("line thick", one.classes)} points="{corners}"/>')
        for measured, (x, y) in zip(one.values, points, strict=True):
            if measured.low < measured.high:
                ends = (x, axis.at(measured.low)), (x, axis.at(measured.high))
                parts += interval(*ends, 3, f"thin {colour}".rstrip())
            parts.append(circle((x, y), 3.5, colour))
    return parts + _labels(series, axis, right + 10)


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


class Row(NamedTuple):
    """A measured value, with the ends of its interval and the value as the reader sees it.

    The tone is `accent` for what the plot is about, and `warn` for a missed goal.
    """

    label: str
    value: float
    low: float
    high: float
    text: str
    tone: str = ""


class Panel(NamedTuple):
    """Rows on one axis, by the title of their group, which may be empty.

    `goal` is a value that a line marks, and the text at that line. Such a panel has points and no
    bars, because it shows ratios, whose zero means nothing.
    """

    title: str
    unit: str
    groups: Mapping[str, Sequence[Row]]
    goal: tuple[float, str] | None = None


def _row(
    words: Words,
    goal: float | None,
    name: str,
    value: float,
    low: float,
    high: float,
    verdict: str = "",
    own_goal: float = 0,
) -> Row:
    """Returns a row; a ratio has a verdict about its goal, which may not be the panel's."""
    label = words["labels"][name]
    if own_goal not in (0, goal):
        label += f", goal {own_goal:g}"
    if verdict:
        tone = words["tones"].get(verdict, "")
        return Row(label, value, low, high, f"{value:.2f}, {verdict}", tone)
    tone = "accent" if name in words["ours"] else ""
    return Row(label, value, low, high, f"{significant(value)}{words.get('suffix', '')}", tone)


def bars_picture(words: Words, panels: Sequence[Panel]) -> str:
    """Returns a plot with a bar or a point for each row, with panels from top to bottom.

    Widths are in pixels. Screen readers hear the values after the description.
    """
    left, right = MARGIN + words["label_width"], WIDTH - MARGIN - words["value_width"]
    parts, told, top = list[str](), [words["description"]], float(MARGIN)
    for panel in panels:
        drawn, top = _bars_panel(panel, top, left, right)
        parts += drawn
        top += _PANEL_GAP
        values = (
            f"{f'{group}, ' if group else ''}{row.label}: {row.text}"
            for group, rows in panel.groups.items()
            for row in rows
        )
        told.append(f"{panel.title} {'; '.join(values)}.")
    return plot(words["title"], " ".join(told), parts, words["note"], top - _PANEL_GAP + 14)


def _bars_panel(panel: Panel, top: float, left: float, right: float) -> tuple[list[str], float]:
    parts = [text(MARGIN, top + 12, panel.title, "title")]
    top += 40 if panel.goal else 28
    rows = [row for group in panel.groups.values() for row in group]
    goal, goal_text = panel.goal or (0, "")
    axis = axis_to(max(goal, *(row.high for row in rows)), left, right, most_ticks=6)
    titles = sum(1 for title in panel.groups if title)
    bottom = top + _ROW * (len(rows) + titles) + _GROUP_GAP * (len(panel.groups) - 1) + 4
    for value, label in axis.ticks():
        x = axis.at(value)
        parts.append(line((x, top), (x, bottom), "thin grid" if value else "thin"))
        parts.append(text(x, bottom + 16, label, "small soft middle"))
    parts.append(text((left + right) / 2, bottom + 34, panel.unit, "small soft middle"))
    if panel.goal:
        x = axis.at(goal)
        parts.append(line((x, top - 6), (x, bottom), "ink dashed"))
        parts.append(text(x, top - 10, goal_text, "small middle"))
    y = top + 4 - _GROUP_GAP
    for title, group in panel.groups.items():
        y += _GROUP_GAP
        if title:
            parts.append(text(MARGIN, y + 17, title, "label bold soft halo"))
            y += _ROW
        for row in group:
            parts += _bar(row, axis, y + _ROW / 2, is_point=panel.goal is not None)
            y += _ROW
    return parts, bottom + 38


def _bar(row: Row, axis: Axis, middle: float, *, is_point: bool) -> list[str]:
    low, high = (axis.at(row.low), middle), (axis.at(row.high), middle)
    base = middle + 4.5
    parts = [text(axis.start_pixel - 10, base, row.label, "end")]
    if is_point:
        parts += interval(low, high, 4, row.tone)
        parts.append(circle((axis.at(row.value), middle), 4.5, row.tone))
    else:
        width = axis.at(row.value) - axis.start_pixel
        parts.append(
            f'<rect{classed("bar", row.tone)} x="{number(axis.start_pixel)}" '
            f'y="{number(middle - _BAR / 2)}" width="{number(width)}" height="{_BAR}" rx="2"/>'
        )
        # The interval has a rim, so that it stands out from the bar.
        parts += [line(low, high, "rim"), *interval(low, high, 4, "ink")]
    return [*parts, text(WIDTH - MARGIN, base, row.text, f"label end {row.tone}".rstrip())]


def scatter_picture(words: Words, panels: Sequence[Sequence[Sequence[Any]]]) -> str:
    """Returns a plot of two panels of points: a measured and a predicted value, and of what.

    Dashed lines show the relative error `limit` of each panel.
    """
    parts, told, top = list[str](), [words["description"]], MARGIN + 48.0
    for index, (panel, points) in enumerate(zip(words["panels"], panels, strict=True)):
        left = MARGIN + 34 + index * ((WIDTH - 2 * MARGIN - _GAP) / 2 + _GAP)
        parts.append(text(left - 34, MARGIN + 12, panel["title"], "title"))
        parts.append(text(left - 34, MARGIN + 32, words["y_title"], "small soft"))
        parts += _axes(left, top, words["x_title"])
        for factor in (1.0, 1 - panel["limit"], 1 + panel["limit"]):
            least, most = max(_LEAST, _LEAST / factor), min(_MOST, _MOST / factor)
            start, end = (_place(left, top, each, each * factor) for each in (least, most))
            parts.append(line(start, end, "thin" if factor == 1 else "thin dashed"))
        errors: dict[str, list[float]] = {}
        for measured, predicted, name in points:
            parts.append(circle(_place(left, top, measured, predicted), 3, "accent"))
            errors.setdefault(name, []).append(100 * (predicted / measured - 1))
        for name, own in errors.items():
            told.append(f"{name}: {len(own)} rows, {min(own):+.0f} to {max(own):+.0f} %.")
    return plot(words["title"], " ".join(told), parts, words["note"], top + _SIDE + 48)


def _place(left: float, top: float, x: float, y: float) -> tuple[float, float]:
    """Returns where a point is in a panel, on logarithmic axes."""
    across, up = (_SIDE * math.log(v / _LEAST) / math.log(_MOST / _LEAST) for v in (x, y))
    return left + across, top + _SIDE - up


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
