"""The SVG elements of written pictures, and `style.css`, the style that all pictures share.

Each picture in docs/pictures carries the same style, because a picture on a page cannot load one.
The panel is painted too: a page may be dark while the reader's system prefers light, or the other
way round. Most pictures are written by hand with its classes:

- `rect`: `panel` (the ground), `group`, `box`; a box is also `accent` or `quiet` (dashed).
- `text`: 13 pixels, or `title`, `label`, `small` or `number`; `soft`, `accent` and `warn` are
  colours, `middle` and `end` are anchors, and `halo` keeps a text readable on a line.
- `tspan`: `code`.
- `path`, `line` and `polyline`: `line` or `arrow`. An arrow ends 6 pixels before its box, and the
  style adds its head.
"""

import re
import textwrap
from collections.abc import Iterable
from pathlib import Path
from xml.sax.saxutils import escape

MARGIN = 24
WIDTH = 752
CSS = Path(__file__).with_name("style.css").read_text("utf-8")
_STYLE = re.compile(r"  <style>.*?</style>\n", re.DOTALL)


def style() -> str:
    """Returns the element that each picture begins with, after its title and description."""
    return f"  <style>\n{textwrap.indent(CSS, '    ')}  </style>\n"


def with_style(picture: str) -> str:
    """Returns an SVG document with the shared style in place of its own."""
    return _STYLE.sub(lambda _: style(), picture, count=1)


def plot(title: str, description: str, parts: Iterable[str], note: str, top: float) -> str:
    """Returns an SVG document; the note is small text below `top`, in lines of the whole width."""
    written = [
        text(MARGIN, top + 12 + 18 * index, each, "label soft")
        for index, each in enumerate(textwrap.wrap(note, 115))
    ]
    height = top + 18 * len(written) + 20
    told = escape(description.replace("\n", " ").replace("`", ""))
    words = textwrap.fill(told, 100, initial_indent="    ", subsequent_indent="    ")
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{number(height)}" '
        f'viewBox="0 0 {WIDTH} {number(height)}" role="img" aria-labelledby="title desc">',
        f'  <title id="title">{escape(title)}</title>',
        f'  <desc id="desc">\n{words}\n  </desc>',
        f'{style()}  <rect class="panel" x="0.5" y="0.5" width="{WIDTH - 1}" '
        f'height="{number(height - 1)}" rx="8"/>',
        *(f"  {part}" for part in (*parts, *written)),
        "</svg>\n",
    ]
    return "\n".join(lines)


def text(x: float, y: float, words: str, classes: str) -> str:
    """Returns one line of text on the base line `y`; code in it stands between backticks."""
    spans = re.sub("`([^`]+)`", r'<tspan class="code">\1</tspan>', escape(words))
    return f'<text{classed(classes)} x="{number(x)}" y="{number(y)}">{spans}</text>'


def line(start: tuple[float, float], end: tuple[float, float], classes: str) -> str:
    (x1, y1), (x2, y2) = (map(number, point) for point in (start, end))
    return f'<line{classed("line", classes)} x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}"/>'


def interval(
    start: tuple[float, float], end: tuple[float, float], half_cap: float, classes: str
) -> list[str]:
    """Returns a line with a cap at each end; it is upright or level."""
    is_upright = start[0] == end[0]
    across = (half_cap, 0) if is_upright else (0, half_cap)
    caps = [
        line((x - across[0], y - across[1]), (x + across[0], y + across[1]), classes)
        for x, y in (start, end)
    ]
    return [line(start, end, classes), *caps]


def circle(centre: tuple[float, float], radius: float, classes: str) -> str:
    x, y = map(number, centre)
    return f'<circle{classed(classes)} cx="{x}" cy="{y}" r="{number(radius)}"/>'


def classed(*classes: str) -> str:
    """Returns the attribute of an element's classes; empty ones are left out."""
    names = " ".join(filter(None, classes))
    return f' class="{names}"' if names else ""


def number(value: float) -> str:
    """Returns a number with at most two decimals, the same on every machine."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
