"""A plot of rows: a bar or a point for each, with its interval, its value and a goal."""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.kit.canvas import Canvas, Rect
from tools.pictures.kit.figure import Figure
from tools.pictures.kit.lettering import Font
from tools.pictures.kit.scale import Scale, scale
from tools.pictures.kit.style import MARGIN, SMALL, TITLE, TONES, Tone

_ROW = 26
_BAR = 14
_GROUP_GAP = 10
_TICK = Font(12)
_VALUE = Font(12.5)


@dataclass(frozen=True)
class Row:
    """A measured value.

    Args:
        label: to its left.
        value: the middle.
        text: the value as the reader is to see it, with its unit.
        low: of its interval; None where there is none.
        high: of its interval; None where there is none.
        tone: "accent" for what the plot is about, "warn" for a goal that is missed.
    """

    label: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    tone: Tone = "plain"


@dataclass(frozen=True)
class Panel:
    """Rows on one axis.

    Args:
        title: what is compared.
        unit: of the axis, below it.
        groups: a title, which may be empty, and its rows.
        goal: a value that a line marks; None is no line.
        goal_text: at that line.
        points: a point for each value, not a bar. For ratios, whose zero means nothing.
    """

    title: str
    unit: str
    groups: Sequence[tuple[str, Sequence[Row]]]
    goal: float | None = None
    goal_text: str = ""
    points: bool = False


@dataclass(frozen=True)
class Bars(Figure):
    """A picture of panels below each other.

    Args:
        label_width: pixels for the rows' labels.
        value_width: pixels for the values at the right.
    """

    panels: Sequence[Panel]
    label_width: float = 230
    value_width: float = 90

    panel_gap = 30
    note_gap = 14

    def _values(self) -> str:
        return " ".join(
            f"{panel.title} "
            + "; ".join(
                f"{title + ', ' if title else ''}{row.label}: {row.text}"
                for title, rows in panel.groups
                for row in rows
            )
            + "."
            for panel in self.panels
        ).replace("`", "")

    def _paint(self, canvas: Canvas, panel: Panel, top: float) -> float:
        """Paints a panel and returns its lower edge."""
        canvas.text(panel.title, (MARGIN, top + 12), font=TITLE)
        top += 28 + (12 if panel.goal is not None else 0)
        rows = [row for _, group in panel.groups for row in group]
        greatest = max([row.high or row.value for row in rows] + [panel.goal or 0])
        left = MARGIN + self.label_width
        right = self.width - MARGIN - self.value_width
        axis = scale(greatest, start_pixel=left, end_pixel=right)
        titles = sum(1 for title, _ in panel.groups if title)
        gaps = _GROUP_GAP * (len(panel.groups) - 1)
        bottom = top + _ROW * (len(rows) + titles) + gaps + 4
        for tick in axis.ticks():
            x = axis.at(tick)
            canvas.line((x, top), (x, bottom), colour="grid" if tick else "line")
            at = (x, bottom + 16)
            canvas.text(axis.label(tick), at, font=_TICK, colour="soft", anchor="middle")
        canvas.text(panel.unit, ((left + right) / 2, bottom + 34), font=_TICK, colour="soft",
                    anchor="middle")  # fmt: skip
        if panel.goal is not None:
            x = axis.at(panel.goal)
            canvas.line((x, top - 6), (x, bottom), colour="ink", dash="4 3", thickness=1.5)
            canvas.text(panel.goal_text, (x, top - 10), font=_TICK, anchor="middle")
        y = top + 4
        for index, (title, group) in enumerate(panel.groups):
            y += _GROUP_GAP if index else 0
            if title:
                at = (MARGIN, y + 17)
                canvas.text(title, at, font=Font(12.5, bold=True), colour="soft", halo="panel")
                y += _ROW
            for row in group:
                self._paint_row(canvas, row, axis, y, panel.points)
                y += _ROW
        return bottom + 38

    def _paint_row(self, canvas: Canvas, row: Row, axis: Scale, top: float, is_point: bool) -> None:
        line, letters = TONES[row.tone]
        middle = top + _ROW / 2
        room = Rect(MARGIN, top, MARGIN + self.label_width - 8, top + _ROW)
        label_at = (MARGIN + self.label_width - 10, middle + 4.5)
        canvas.text(row.label, label_at, font=SMALL, anchor="end", room=room)
        x = axis.at(row.value)
        if not is_point:
            fill = {"plain": "bar", "accent": "accent", "warn": "warn"}[row.tone]
            bar = Rect(axis.start_pixel, middle - _BAR / 2, x, middle + _BAR / 2)
            canvas.rect(bar, fill=fill, radius=min(2, max(0, bar.width / 2)))
        if row.low is not None and row.high is not None:
            low, high = axis.at(row.low), axis.at(row.high)
            colour = line if is_point else "ink"
            if not is_point:  # a rim, so that it stands out from the bar too
                canvas.line((low, middle), (high, middle), colour="panel", thickness=4)
            canvas.line((low, middle), (high, middle), colour=colour, thickness=1.5)
            for end in (low, high):
                canvas.line((end, middle - 4), (end, middle + 4), colour=colour, thickness=1.5)
        if is_point:
            canvas.circle((x, middle), 4.5, fill=line)
        right = self.width - MARGIN
        canvas.text(row.text, (right, middle + 4.5), font=_VALUE, colour=letters if
                    row.tone != "plain" else "ink", anchor="end")  # fmt: skip
