"""What all pictures have in common: letters, distances, and the kinds of boxes."""

from collections.abc import Mapping
from typing import Literal

from tools.pictures.kit.lettering import Font

Kind = Literal["plain", "accent", "quiet", "warn", "bare"]
Tone = Literal["plain", "accent", "warn"]
# Beyond this a page scales the picture down, and its text with it.
MAX_WIDTH = 760
MARGIN = 24
TITLE = Font(14, bold=True)
SMALL = Font(13)
LABEL = Font(12.5)
GROUP = Font(12.5, bold=True)
# From one base line of small text to the next.
LINE = 18
# Each kind's fill, edge and dashes.
KINDS: Mapping[Kind, tuple[str, str, str]] = {
    "plain": ("box", "edge", ""),
    "accent": ("tint", "accent", ""),
    "quiet": ("none", "edge", "4 4"),
    "warn": ("blush", "warn", ""),
    "bare": ("none", "none", ""),
}
# Each tone's colour of lines, and of letters.
TONES: Mapping[Tone, tuple[str, str]] = {
    "plain": ("line", "soft"),
    "accent": ("accent", "accent"),
    "warn": ("warn", "warn"),
}
