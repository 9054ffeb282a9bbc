"""A plot of rows: a bar or a point for each, with its interval, its value and a goal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

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

_ROW = 26
_BAR = 14
_GROUP_GAP = 10
_PANEL_GAP = 30


@dataclass(frozen=True)
class Row:
    """A measured value, with the ends of its interval and the value as the reader sees it.

    The tone is `accent` for what the plot is about, and `warn` for a missed goal.
    """

    label: str
    value: float
    low: float
    high: float
    text: str
    tone: str = ""


@dataclass(frozen=True)
class Panel:
    """Rows on one axis, by the title of their group, which may be empty.

    `goal` is a value that a line marks, and the text at that line. Such a panel has points and no
    bars, because it shows ratios, whose zero means nothing.
    """

    title: str
    unit: str
    groups: Mapping[str, Sequence[Row]]
    goal: tuple[float, str] | None = None


def bars_picture(
    title: str,
    description: str,
    panels: Sequence[Panel],
    *,
    label_width: float,
    value_width: float,
    note: str,
) -> str:
    """Returns the picture, with panels from top to bottom; widths are in pixels.

    Title and description are for screen readers, which hear the values after them.
    """
    parts, top = list[str](), float(MARGIN)
    for panel in panels:
        drawn, top = _panel(panel, top, MARGIN + label_width, WIDTH - MARGIN - value_width)
        parts += drawn
        top += _PANEL_GAP
    values = " ".join(
        f"{panel.title} "
        + "; ".join(
            f"{group + ', ' if group else ''}{row.label}: {row.text}"
            for group, rows in panel.groups.items()
            for row in rows
        )
        + "."
        for panel in panels
    )
    return plot(title, f"{description} {values}", parts, note, top - _PANEL_GAP + 14)


def _panel(panel: Panel, top: float, left: float, right: float) -> tuple[list[str], float]:
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
            parts += _row(row, axis, y + _ROW / 2, is_point=panel.goal is not None)
            y += _ROW
    return parts, bottom + 38


def _row(row: Row, axis: Axis, middle: float, *, is_point: bool) -> list[str]:
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
