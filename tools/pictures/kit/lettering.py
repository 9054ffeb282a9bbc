"""How wide a text is, without a font: a table of average widths, the same on every machine.

A picture's reader has other fonts than its author. The table is of Arial's widths, and WIDER is
added, so that a text fits its place in the wider fonts of common systems too.
"""

import re
from dataclasses import dataclass

SANS = "-apple-system, BlinkMacSystemFont, 'Segoe UI', 'Noto Sans', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'Liberation Mono', monospace"
WIDER = 1.08
# Hundredths of the font's size, from the space to the tilde.
_WIDTHS = (
    "28 28 35 56 56 89 67 19 33 33 39 58 28 33 28 28 56 56 56 56 56 56 56 56 "
    "56 56 28 28 58 58 58 56 102 67 67 72 72 67 61 78 72 28 50 67 56 83 72 78 "
    "67 78 72 67 61 72 67 94 67 67 61 28 28 28 47 56 33 56 56 50 56 56 28 56 "
    "56 22 22 50 22 83 56 56 56 56 33 50 28 56 50 72 50 50 50 33 26 33 58"
)
_WIDTH = {chr(32 + place): int(width) for place, width in enumerate(_WIDTHS.split())}
# Any other character, such as an arrow or an accented letter.
_OTHER = 100
_BOLD = 1.07
_MONO = 60.2
# Code is set a little smaller than the text around it, because its letters look larger.
CODE_SCALE = 0.92
_CODE = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Font:
    """How a text is set.

    Args:
        size: in pixels.
        bold: semi-bold, for titles.
        mono: every character equally wide, for code.
    """

    size: float = 13
    bold: bool = False
    mono: bool = False


@dataclass(frozen=True)
class Run:
    """A part of a line that is either text or code."""

    text: str
    code: bool


def runs(text: str) -> list[Run]:
    """Returns the parts of a line; code stands between backticks, as in Markdown."""
    parts = _CODE.split(text)
    return [Run(part, index % 2 == 1) for index, part in enumerate(parts) if part]


def width(text: str, font: Font) -> float:
    """Returns how many pixels a line takes, at most, in the fonts of common systems."""
    return sum(_run_width(run, font) for run in runs(text))


def wrap(text: str, font: Font, limit: float) -> list[str]:
    r"""Returns the lines of a text that is broken at spaces; code is never broken.

    Args:
        text: `\n` in it begins a line.
        font: how it is set.
        limit: pixels. A single word may be wider; the canvas reports it.
    """
    lines: list[str] = []
    for paragraph in text.split("\n"):
        line = ""
        for word in re.findall(r"(?:`[^`]*`|[^\s`])+", paragraph):
            longer = f"{line} {word}" if line else word
            if line and width(longer, font) > limit:
                lines.append(line)
                line = word
            else:
                line = longer
        lines.append(line)
    return lines


def _run_width(run: Run, font: Font) -> float:
    if run.code or font.mono:
        scale = CODE_SCALE if run.code and not font.mono else 1.0
        return len(run.text) * _MONO / 100 * font.size * scale
    hundredths = sum(_WIDTH.get(character, _OTHER) for character in run.text)
    return hundredths / 100 * font.size * WIDER * (_BOLD if font.bold else 1.0)
