"""Plots of a run as elements of a page: points of two figures as SVG, and heat maps as tables."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple

from slipway.operations.plots import axis_to, horizontal_grid, svg_head, svg_text

_SIZE: Final = 560, 320
_LEFT, _RIGHT, _UPPER, _LOWER = 64.0, 540.0, 62.0, 262.0
_KINDS: Final = 4
_LETTER_PIXELS: Final = 7
# Shades beside which a number is still easy to read, in light and in dark.
_LIGHTEST_PERCENT, _DARKEST_PERCENT = 6.0, 45.0

HEAT_STYLE: Final = """\
.heat caption { color: var(--ink); font-weight: 600; text-align: left }
.heat th { font-weight: 400 }
.heat td[style] { padding: .4rem .9rem; text-align: center;
  background: color-mix(in srgb, var(--line0) var(--shade), transparent) }
"""
"""CSS of heat maps beside that of every plot."""


class Point(NamedTuple):
    x: float
    y: float
    label: str


def points_plot(
    name: str,
    title: str,
    x_title: str,
    y_title: str,
    curves: Mapping[str, Sequence[Point]],
    *,
    are_joined: bool,
) -> str:
    """Returns a plot of one figure against another; both axes begin at zero."""
    points = [point for curve in curves.values() for point in curve]
    x_axis = axis_to(max(point.x for point in points) or 1, _LEFT, _RIGHT, most_ticks=6)
    y_axis = axis_to(max(point.y for point in points) or 1, _LOWER, _UPPER, most_ticks=5)
    told = "; ".join(
        f"{name}: " + ", ".join(f"{y:.3g} at {x:.3g} ({label})" for x, y, label in curve)
        for name, curve in curves.items()
    )
    parts = [
        svg_head(name, f"{title}: {y_title} against {x_title}", told, _SIZE),
        svg_text(12, 18, title, "title"),
        svg_text(12, 50, y_title),
        svg_text(_RIGHT, _LOWER + 40, x_title, "end"),
        *horizontal_grid(y_axis, _LEFT, _RIGHT),
    ]
    for value, tick in x_axis.ticks():
        x, kind = x_axis.at(value), "" if value else ' class="axis"'
        parts.append(f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="{_LOWER:g}" y2="{_UPPER:g}"/>')
        parts.append(svg_text(x, _LOWER + 17, tick, "middle"))
    left = 12.0
    for index, (label, curve) in enumerate(curves.items()):
        kind = f"line{index % _KINDS}"
        if len(curves) > 1:
            parts.append(
                f'<line class="line {kind}" x1="{left:g}" x2="{left + 20:g}" y1="30" y2="30"/>'
            )
            parts.append(svg_text(left + 26, 34, label))
            left += 44 + _LETTER_PIXELS * len(label)
        places = [Point(x_axis.at(x), y_axis.at(y), load) for x, y, load in curve]
        parts += _curve(label, places, kind, is_joined=are_joined)
    return "\n".join([*parts, "</svg>\n"])


def _curve(name: str, places: Sequence[Point], kind: str, *, is_joined: bool) -> Iterator[str]:
    if is_joined and len(places) > 1:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        yield f'<polyline class="line {kind}" points="{corners}"/>'
    taken: list[tuple[float, float]] = []
    for x, y, label in places:
        yield (
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="3.5">'
            f"<title>{escape(name)}: {escape(label)}</title></circle>"
        )
        # A label that would cover another one is left out; it is in the point's title.
        if is_joined and all(abs(x - a) > 26 or abs(y - b) > 14 for a, b in taken):
            taken.append((x, y))
            end = x > _RIGHT - 40
            yield svg_text(x - 7 if end else x + 7, y - 7, label, "end" if end else "")


# Any: levels.
def heat_map(
    title: str, rows: Mapping[Any, str], columns: Mapping[Any, str], values: Mapping[Any, float]
) -> str:
    """Returns a table whose cells are the darker the greater their numbers are.

    `values` has one measured figure for each pair of a row's level and a column's level.
    """
    low, span = min(values.values()), max(values.values()) - min(values.values()) or 1.0
    lines = [f'<table class="plot heat"><caption>{escape(title)}</caption>']
    lines.append(
        f"<tr><td></td>{''.join(f'<th>{escape(each)}</th>' for each in columns.values())}</tr>"
    )
    for row, label in rows.items():
        lines.append(f"<tr><th>{escape(label)}</th>")
        for column in columns:
            text, shade = "-", 0.0
            if (value := values.get((row, column))) is not None:
                text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
                shade = _LIGHTEST_PERCENT + (_DARKEST_PERCENT - _LIGHTEST_PERCENT) * (
                    (value - low) / span
                )
            lines.append(f'<td style="--shade: {shade:.1f}%">{text}</td>')
        lines.append("</tr>")
    return "\n".join([*lines, "</table>"])
