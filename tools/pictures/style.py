"""The style that all pictures share: `style.css`, their colours, letters and kinds of shapes.

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
from pathlib import Path

CSS = Path(__file__).with_name("style.css").read_text("utf-8")
_STYLE = re.compile(r"  <style>.*?</style>\n", re.DOTALL)


def style() -> str:
    """Returns the element that each picture begins with, after its title and description."""
    return f"  <style>\n{textwrap.indent(CSS, '    ')}  </style>\n"


def with_style(picture: str) -> str:
    """Returns an SVG document with the shared style in place of its own."""
    return _STYLE.sub(lambda _: style(), picture, count=1)
