"""The style that all pictures share: their colours, letters and kinds of shapes, as CSS.

Each picture in docs/pictures carries the same style, because a picture on a page cannot load one.
Most pictures are written by hand with its classes:

- `rect`: `panel` (the ground), `group`, `box`; a box is also `accent` or `quiet` (dashed).
- `text`: 13 pixels, or `title`, `label`, `small` or `number`; `soft`, `accent` and `warn` are
  colours, `middle` and `end` are anchors, and `halo` keeps a text readable on a line.
- `tspan`: `code`.
- `path`, `line` and `polyline`: `line` or `arrow`. An arrow ends 6 pixels before its box, and the
  style adds its head.
"""

import re
from collections.abc import Mapping

# Each colour on a light page, and on a dark page. The panel is painted too: a page may be dark
# while the reader's system prefers light, or the other way round.
COLOURS: Mapping[str, tuple[str, str]] = {
    "panel": ("#ffffff", "#14191f"),
    "frame": ("#d7dce2", "#323a44"),
    "group": ("#f5f7f9", "#1b2129"),
    "box": ("#ffffff", "#232a33"),
    "edge": ("#c3cad2", "#46505c"),
    "ink": ("#1f2730", "#e8edf2"),
    "soft": ("#566270", "#a5b0bc"),
    "line": ("#6b7783", "#8b97a4"),
    "accent": ("#0f6b7a", "#63c7d6"),
    "tint": ("#e4f3f5", "#143840"),
    "warn": ("#a93a22", "#ff9d86"),
    "bar": ("#b9c2cc", "#4d5865"),
    "grid": ("#e6eaee", "#2a323b"),
}
# What a selector's shapes are filled with, and the colour of their lines.
_PAINTED: Mapping[str, tuple[str, str]] = {
    "text": ("ink", ""),
    "text.soft": ("soft", ""),
    "text.accent": ("accent", ""),
    "text.warn": ("warn", ""),
    "text.number": ("panel", ""),
    "text.halo": ("", "panel"),
    "text.halo.group": ("", "group"),
    "rect.panel": ("panel", "frame"),
    "rect.group": ("group", "frame"),
    "rect.box": ("box", "edge"),
    "rect.box.accent": ("tint", "accent"),
    "rect.box.quiet": ("panel", "edge"),
    "rect.bar": ("bar", ""),
    "rect.bar.accent": ("accent", ""),
    "circle, #head path": ("line", ""),
    "circle.accent, #accent-head path": ("accent", ""),
    "circle.warn": ("warn", ""),
    "circle.edge": ("edge", ""),
    ".line, .arrow": ("", "line"),
    ".line.accent, .arrow.accent": ("", "accent"),
    ".line.warn": ("", "warn"),
    ".line.ink": ("", "ink"),
    ".line.grid": ("", "grid"),
    ".line.frame": ("", "frame"),
    ".line.rim": ("", "panel"),
}
_SHAPES = """\
text { font-family: -apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif }
text { font-size: 13px }
.code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace }
tspan.code { font-size: 0.92em }
.title { font-size: 14px; font-weight: 600 }
.label { font-size: 12.5px }
.small, .number { font-size: 12px }
.bold, .number { font-weight: 600 }
.middle, .number { text-anchor: middle }
.end { text-anchor: end }
.halo { stroke-width: 4px; stroke-linejoin: round; paint-order: stroke }
.quiet { stroke-dasharray: 4 4 }
.line, .arrow { fill: none; stroke-width: 1.5px }
.thin { stroke-width: 1px }
.thick { stroke-width: 2px }
.dashed { stroke-dasharray: 5 4 }
.dotted { stroke-dasharray: 3 3 }
.rim { stroke-width: 4px }
.arrow { marker-end: url(#head) }
.arrow.accent { marker-end: url(#accent-head) }"""  # noqa: E501  # one rule a line
_STYLE = re.compile(r"  <style>.*?</style>\n", re.DOTALL)


def _rules(scheme: int, indent: str) -> str:
    """Returns the CSS of the colours for light pages (0) or dark pages (1)."""
    lines = []
    for selector, painted in _PAINTED.items():
        properties = "; ".join(
            f"{name}: {COLOURS[colour][scheme]}"
            for name, colour in zip(("fill", "stroke"), painted, strict=True)
            if colour
        )
        lines.append(f"{indent}{selector} {{ {properties} }}")
    return "\n".join(lines)


def style() -> str:
    """Returns the element that each picture begins with, after its title and description."""
    shapes = "\n".join(f"    {line}" for line in _SHAPES.splitlines())
    return (
        f"  <style>\n{shapes}\n{_rules(0, '    ')}\n    @media (prefers-color-scheme: dark) {{\n"
        f"{_rules(1, '      ')}\n    }}\n  </style>\n"
    )


def with_style(picture: str) -> str:
    """Returns an SVG document with the shared style in place of its own."""
    return _STYLE.sub(lambda _: style(), picture, count=1)
