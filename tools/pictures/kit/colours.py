"""The colours of every picture, for a light and a dark page.

A picture paints a panel of its own behind everything. The page may be dark while the reader's
system prefers light, or the other way round.
"""

from collections.abc import Mapping

LIGHT: Mapping[str, str] = {
    "panel": "#ffffff",
    "frame": "#d7dce2",
    "group": "#f5f7f9",
    "box": "#ffffff",
    "edge": "#c3cad2",
    "ink": "#1f2730",
    "soft": "#566270",
    "line": "#6b7783",
    "accent": "#0f6b7a",
    "tint": "#e4f3f5",
    "warn": "#a93a22",
    "blush": "#fcece8",
    "bar": "#b9c2cc",
    "grid": "#e6eaee",
}
DARK: Mapping[str, str] = {
    "panel": "#14191f",
    "frame": "#323a44",
    "group": "#1b2129",
    "box": "#232a33",
    "edge": "#46505c",
    "ink": "#e8edf2",
    "soft": "#a5b0bc",
    "line": "#8b97a4",
    "accent": "#63c7d6",
    "tint": "#143840",
    "warn": "#ff9d86",
    "blush": "#45241d",
    "bar": "#4d5865",
    "grid": "#2a323b",
}
# Which text stands on which ground; the tests hold their contrast against WCAG's 4.5.
TEXT_ON = [
    ("ink", "panel"),
    ("ink", "box"),
    ("ink", "group"),
    ("ink", "tint"),
    ("ink", "blush"),
    ("soft", "panel"),
    ("soft", "box"),
    ("soft", "group"),
    ("soft", "tint"),
    ("soft", "blush"),
    ("accent", "panel"),
    ("accent", "box"),
    ("accent", "group"),
    ("accent", "tint"),
    ("warn", "panel"),
    ("warn", "group"),
    ("warn", "blush"),
    ("panel", "accent"),
    ("panel", "warn"),
]
