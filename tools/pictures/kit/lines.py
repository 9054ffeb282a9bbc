"""A plot of lines: several series over the same few places, beside each other or alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.report import significant
from tools.pictures.kit.canvas import Canvas, Rect, number
from tools.pictures.kit.figure import Figure
from tools.pictures.kit.lettering import Font, width
from tools.pictures.kit.routes import Point
from tools.pictures.kit.scale import Scale, scale
from tools.pictures.kit.style import LABEL, MARGIN, TITLE, TONES, Tone

_PLOT_HEIGHT = 190
_TICK = Font(12)
_LABEL_GAP = 10
_LABEL_LINE = 15


@dataclass(frozen=True)
class Value:
    """A measured value.

    Args:
        at: the place on the horizontal axis, as its label.
        value: the middle.
        low: of its interval; None where there is none.
        high: of its interval; None where there is none.
    """

    at: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Series:
    """A line.

    Args:
        label: at its end; a line break begins a line.
        values: in the order of the axis; a place may be missing.
        tone: "accent" for the line that the plot is about.
        dashed: for one of two lines of one tone.
    """

    label: str
    values: Sequence[Value]
    tone: Tone = "plain"
    dashed: bool = False


@dataclass(frozen=True)
class Panel:
    """A plot of its own axis.

    Args:
        title: what it shows.
        unit: of the values, above the axis.
        places: labels of the horizontal axis, at equal distances.
        series: its lines.
        greatest: of the values on the axis, where panels are to have one axis; None is the
            panel's own greatest.
    """

    title: str
    unit: str
    places: Sequence[str]
    series: Sequence[Series]
    greatest: float | None = None


@dataclass(frozen=True)
class Lines(Figure):
    """A picture of panels beside each other or below each other.

    Args:
        panels: from left to right, `columns` to a row.
        place_title: below the horizontal axes.
        columns: panels in a row.
        label_width: pixels for the labels at the lines' ends.
    """

    panels: Sequence[Panel]
    place_title: str
    columns: int = 1
    label_width: float = 150

    panel_gap = 26
    note_gap = 12

    def _paint_panels(self, canvas: Canvas) -> float:
        """Paints the panels, row by row, and returns their lower edge."""
        column_width = (
            self.width - 2 * MARGIN - self.panel_gap * (self.columns - 1)
        ) / self.columns
        top: float = MARGIN
        for start in range(0, len(self.panels), self.columns):
            bottom = top
            for column, panel in enumerate(self.panels[start : start + self.columns]):
                left = MARGIN + column * (column_width + self.panel_gap)
                bottom = self._paint(canvas, panel, top, left, left + column_width)
            top = bottom + self.panel_gap
        return top - self.panel_gap

    def _values(self) -> str:
        return " ".join(
            f"{panel.title.replace('`', '')}: {series.label}: "
            + ", ".join(f"{significant(each.value)} at {each.at}" for each in series.values)
            + "."
            for panel in self.panels
            for series in panel.series
        ).replace("\n", " ")

    def _paint(
        self, canvas: Canvas, panel: Panel, top: float, left: float = MARGIN, right: float = 0
    ) -> float:
        """Paints a panel and returns its lower edge."""
        room = Rect(left, top - 4, right, top + 20)
        canvas.text(panel.title, (left, top + 12), font=TITLE, room=room)
        canvas.text(panel.unit, (left, top + 32), font=_TICK, colour="soft")
        greatest = panel.greatest or max(
            value.high or value.value for each in panel.series for value in each.values
        )
        upper, lower = top + 48, top + 48 + _PLOT_HEIGHT
        axis = scale(greatest, start_pixel=lower, end_pixel=upper, most_ticks=5)
        tick_width = max(width(axis.label(tick), _TICK) for tick in axis.ticks())
        plot = Rect(left + tick_width + 8, upper, right - self.label_width, lower)
        for tick in axis.ticks():
            y = axis.at(tick)
            colour = "grid" if tick else "line"
            canvas.line((plot.left, y), (plot.right, y), colour=colour)
            at = (plot.left - 8, y + 4)
            canvas.text(axis.label(tick), at, font=_TICK, colour="soft", anchor="end")
        xs = _xs(panel.places, plot)
        for place, x in xs.items():
            at = (x, lower + 18)
            canvas.text(place, at, font=_TICK, colour="soft", anchor="middle")
        middle = (plot.left + plot.right) / 2
        canvas.text(
            self.place_title, (middle, lower + 36), font=_TICK, colour="soft", anchor="middle"
        )
        # The accent last, so that it lies on top.
        for series in sorted(panel.series, key=lambda each: each.tone == "accent"):
            _paint_series(canvas, series, xs, axis)
        self._paint_labels(canvas, panel, plot, axis)
        return lower + 40

    def _paint_labels(self, canvas: Canvas, panel: Panel, plot: Rect, axis: Scale) -> None:
        """Writes each series' label at the height of its last value, moved so that none overlap."""
        ends = sorted(
            ((axis.at(series.values[-1].value), series) for series in panel.series),
            key=lambda end: end[0],
        )
        below = plot.top - 12
        tops: list[float] = []
        for y, series in ends:
            height = _LABEL_LINE * (series.label.count("\n") + 1)
            tops.append(max(y - height / 2, below))
            below = tops[-1] + height + 3
        # What was pushed below the axis goes up again, and pushes the others.
        floor = plot.bottom + 6
        for index in reversed(range(len(ends))):
            height = _LABEL_LINE * (ends[index][1].label.count("\n") + 1)
            tops[index] = min(tops[index], floor - height)
            floor = tops[index] - 3
        for (_, series), label_top in zip(ends, tops, strict=True):
            colour = TONES[series.tone][1]
            for index, line in enumerate(series.label.split("\n")):
                at = (plot.right + _LABEL_GAP, label_top + 11.5 + index * _LABEL_LINE)
                room = Rect(
                    plot.right, plot.top - 20, plot.right + self.label_width, plot.bottom + 20
                )
                canvas.text(line, at, font=LABEL, colour=colour, room=room)


def _xs(places: Sequence[str], plot: Rect) -> dict[str, float]:
    """Returns where each place is."""
    inside = plot.width - 28
    steps = max(1, len(places) - 1)
    return {place: plot.left + 14 + inside * index / steps for index, place in enumerate(places)}


def _paint_series(canvas: Canvas, series: Series, xs: dict[str, float], axis: Scale) -> None:
    colour = TONES[series.tone][0]
    points: list[Point] = [(xs[value.at], axis.at(value.value)) for value in series.values]
    data = "M" + "L".join(f"{number(x)} {number(y)}" for x, y in points)
    canvas.path(data, colour=colour, thickness=2, dash="5 4" if series.dashed else "")
    for value, (x, y) in zip(series.values, points, strict=True):
        if value.low is not None and value.high is not None:
            canvas.line((x, axis.at(value.low)), (x, axis.at(value.high)), colour=colour)
            for end in (value.low, value.high):
                canvas.line((x - 3, axis.at(end)), (x + 3, axis.at(end)), colour=colour)
        canvas.circle((x, y), 3.5, fill=colour)
