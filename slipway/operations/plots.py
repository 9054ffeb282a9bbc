"""Plots of values over time as SVG elements of a page: a pure function of the values."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Final


@dataclass(frozen=True)
class Axis:
    """A linear axis from zero, at `start_pixel`, to a tick; `step` is between two ticks."""

    end: float
    step: float
    start_pixel: float
    end_pixel: float

    def at(self, value: float) -> float:
        return self.start_pixel + (self.end_pixel - self.start_pixel) * value / self.end

    def ticks(self) -> list[tuple[float, str]]:
        decimals = max(0, -math.floor(math.log10(self.step) + 1e-9))
        count = round(self.end / self.step)
        values = [self.step * index for index in range(count + 1)]
        return [(value, f"{value:,.{decimals}f}" if value else "0") for value in values]


def axis_to(greatest: float, start_pixel: float, end_pixel: float, most_ticks: int) -> Axis:
    """Returns an axis from zero to the first tick that is not less than the greatest value."""
    power = 10.0 ** math.floor(math.log10(greatest / most_ticks))
    steps = (power * factor for factor in (1, 2, 5, 10))
    step = next(step for step in steps if step * most_ticks >= greatest - 1e-9)
    return Axis(step * math.ceil(greatest / step - 1e-9), step, start_pixel, end_pixel)


Values = Sequence[float | None]
"""Of consecutive periods; None is a gap."""

_WIDTH: Final = 560
_HEIGHT: Final = 220
_LEFT, _RIGHT, _UPPER, _LOWER = 56.0, 548.0, 50.0, 190.0
_MOST_LABELS: Final = 7
# Seconds from one label of the time to the next.
_STEPS: Final = (60, 300, 600, 1800, 3600, 2 * 3600, 4 * 3600, 6 * 3600, 12 * 3600, 24 * 3600)
_DAY_SECONDS: Final = 24 * 3600
_KINDS: Final = 4

STYLE: Final = """\
.plot {
  --panel: #ffffff; --ink: #1f2730; --soft: #566270; --grid: #e6eaee; --axis: #6b7783;
  --line0: #0f6b7a; --line1: #a93a22; --line2: #6a4fb3; --line3: #566270;
  display: block; max-width: 100%; height: auto; background: var(--panel);
}
@media (prefers-color-scheme: dark) {
  .plot {
    --panel: #14191f; --ink: #e8edf2; --soft: #a5b0bc; --grid: #2a323b; --axis: #8b97a4;
    --line0: #63c7d6; --line1: #ff9d86; --line2: #b9a4f5; --line3: #a5b0bc;
  }
}
.plot text { font: 12px system-ui, sans-serif; fill: var(--soft) }
.plot .title { font-size: 14px; font-weight: 600; fill: var(--ink) }
.plot .middle { text-anchor: middle }
.plot .end { text-anchor: end }
.plot line { stroke: var(--grid) }
.plot line.axis { stroke: var(--axis) }
.plot .line { fill: none; stroke-width: 2; stroke-linejoin: round }
.plot .line0 { stroke: var(--line0) }
.plot .line1 { stroke: var(--line1); stroke-dasharray: 5 3 }
.plot .line2 { stroke: var(--line2); stroke-dasharray: 2 2 }
.plot .line3 { stroke: var(--line3); stroke-dasharray: 8 3 2 3 }
.plot circle[class] { fill: var(--panel); stroke-width: 2; stroke-dasharray: none }
"""
"""CSS of every plot, which a page has once."""


@dataclass(frozen=True)
class Series:
    label: str
    values: Values


@dataclass(frozen=True)
class Plot:
    """Lines over one time, of as many periods each; no other plot on a page has the title."""

    title: str
    unit: str
    series: tuple[Series, ...]
    start: datetime
    period_seconds: int


def as_svg(plot: Plot) -> str:
    """Returns an `svg` element for a page that has `STYLE`."""
    name = f"plot-{plot.title.lower().replace(' ', '-')}"
    known = [value for one in plot.series for value in one.values if value is not None]
    axis = axis_to(max(known, default=0) or 1, _LOWER, _UPPER, most_ticks=4)
    parts = [
        svg_head(name, f"{plot.title}, {plot.unit}", _description(plot), (_WIDTH, _HEIGHT)),
        svg_text(12, 18, plot.title, "title"),
        svg_text(12, 34, plot.unit),
        *horizontal_grid(axis, _LEFT, _RIGHT),
        *_times(plot),
        *_legend(plot.series),
    ]
    if not known:
        parts.append(svg_text((_LEFT + _RIGHT) / 2, (_LOWER + _UPPER) / 2, "no data", "middle"))
    for index, one in enumerate(plot.series):
        parts += _line(one.values, axis, f"line{index % _KINDS}")
    return "\n".join([*parts, "</svg>\n"])


def _description(plot: Plot) -> str:
    """Returns the lines in words, for those who do not see them."""
    end = plot.start.timestamp() + plot.period_seconds * max(
        (len(one.values) for one in plot.series), default=0
    )
    first, last = (f"{each:%Y-%m-%d %H:%M}" for each in (plot.start, _moment(end)))
    words = [f"From {first} to {last} UTC."]
    for one in plot.series:
        known = [value for value in one.values if value is not None]
        if not known:
            words.append(f"{one.label}: no data.")
            continue
        low, high, latest = (_short(each) for each in (min(known), max(known), known[-1]))
        words.append(f"{one.label}: {low} to {high}, the latest {latest}.")
    return " ".join(words)


def svg_head(name: str, title: str, description: str, size: tuple[int, int]) -> str:
    """Returns the begin of an `svg` element; the name is different from others on a page."""
    width, height = size
    return (
        f'<svg class="plot" role="img" aria-labelledby="{name}-title {name}-desc" '
        f'width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<title id="{name}-title">{escape(title)}</title>\n'
        f'<desc id="{name}-desc">{escape(description)}</desc>'
    )


def svg_text(x: float, y: float, words: str, kind: str = "") -> str:
    classed = f' class="{kind}"' if kind else ""
    return f'<text{classed} x="{x:.4g}" y="{y:.4g}">{escape(words)}</text>'


def horizontal_grid(axis: Axis, left: float, right: float) -> Iterator[str]:
    for value, label in axis.ticks():
        y = axis.at(value)
        kind = "" if value else ' class="axis"'
        yield f'<line{kind} x1="{left:g}" x2="{right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield svg_text(left - 8, y + 4, label, "end")


def _times(plot: Plot) -> Iterator[str]:
    count = max((len(one.values) for one in plot.series), default=0)
    start, length = plot.start.timestamp(), max(count - 1, 1) * plot.period_seconds
    step = next((each for each in _STEPS if length / each <= _MOST_LABELS), _DAY_SECONDS)
    for seconds in range(math.ceil(start / step) * step, int(start + length) + 1, step):
        x = _LEFT + (_RIGHT - _LEFT) * (seconds - start) / length
        label = f"{_moment(seconds):{'%m-%d' if step == _DAY_SECONDS else '%H:%M'}}"
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_LOWER:g}" y2="{_UPPER:g}"/>'
        yield svg_text(min(x, _RIGHT - 14), _LOWER + 17, label, "middle")
    yield svg_text(12, _LOWER + 17, "UTC")


def _legend(series: Sequence[Series]) -> Iterator[str]:
    right = _RIGHT
    for index, one in reversed([*enumerate(series)]):
        x = right - 7 * len(one.label)
        kind = f"line line{index % _KINDS}"
        yield f'<line class="{kind}" x1="{x - 26:g}" x2="{x - 6:g}" y1="14" y2="14"/>'
        yield svg_text(x, 18, one.label)
        right = x - 38


def _line(values: Values, axis: Axis, kind: str) -> Iterator[str]:
    """Yields a line for each run of values between gaps; a value alone is a circle."""
    step = (_RIGHT - _LEFT) / max(len(values) - 1, 1)
    points = [
        None if value is None else (_LEFT + index * step, axis.at(value))
        for index, value in enumerate(values)
    ]
    for is_gap, group in itertools.groupby(points, lambda point: point is None):
        run = [] if is_gap else [point for point in group if point is not None]
        if len(run) == 1:
            ((x, y),) = run
            yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2"/>'
        elif run:
            corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in run)
            yield f'<polyline class="line {kind}" points="{corners}"/>'


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
