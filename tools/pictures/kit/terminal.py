"""A picture of a terminal session: its steps light up one after another, and stay.

Where a reader's system asks for less motion, and where pictures do not move, all of it is there at
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.kit.canvas import Canvas, Rect
from tools.pictures.kit.lettering import Font

_FONT = Font(12, mono=True)
_BOLD = Font(12, bold=True, mono=True)
_LINE = 17
_BAR = 34
_PADDING = 18
_SECONDS_A_STEP = 0.7


@dataclass(frozen=True)
class Terminal:
    """A picture of a terminal session.

    Args:
        name: of its file, without the ending.
        title: for screen readers, and in the window's bar.
        description: the same content in words, for screen readers.
        steps: the lines that appear together. A line that begins with `$ ` is a command, and one
            that begins with `== ` is a heading.
        columns: of the terminal; longer lines are broken, as terminals do.
        width: of the picture.
    """

    name: str
    title: str
    description: str
    steps: Sequence[Sequence[str]]
    columns: int = 100
    width: float = 760

    def svg(self) -> str:
        """Returns the SVG document.

        Raises:
            DrawingError: a line does not fit.
        """
        canvas = Canvas()
        self._paint_bar(canvas)
        line = 0
        for index, step in enumerate(self.steps):
            canvas.open_group(f"t t{index}")
            for text in step:
                for start in range(0, max(1, len(text)), self.columns):
                    self._paint_line(canvas, text[start : start + self.columns], start, line)
                    line += 1
            canvas.close_group()
        delays = "".join(
            f".t{index}{{animation-delay:{index * _SECONDS_A_STEP:.1f}s}}"
            for index in range(len(self.steps))
        )
        return canvas.svg(
            name=self.name,
            title=self.title,
            description=self.description,
            size=(self.width, _BAR + 2 * _PADDING + line * _LINE - 4),
            style=(
                "@keyframes appear{from{opacity:.4}to{opacity:1}}"
                "@media (prefers-reduced-motion: no-preference)"
                f"{{.t{{animation:appear .4s both}}{delays}}}"
            ),
        )

    def _paint_bar(self, canvas: Canvas) -> None:
        for index in range(3):
            canvas.circle((_PADDING + 5 + 18 * index, _BAR / 2 + 1), 5, fill="edge")
        at = (self.width / 2, _BAR / 2 + 5)
        canvas.text(self.title, at, font=Font(12.5), colour="soft", anchor="middle")
        canvas.line((1, _BAR), (self.width - 1, _BAR), colour="frame")

    def _paint_line(self, canvas: Canvas, text: str, start: int, line: int) -> None:
        """Writes one row of the screen; `start` is its first character's place in its line."""
        y = _BAR + _PADDING + 10 + line * _LINE
        room = Rect(_PADDING, y - _LINE, self.width - _PADDING + 2, y + _LINE)
        if start == 0 and text.startswith("$ "):
            dollar = canvas.text("$", (_PADDING, y), font=_BOLD, colour="accent")
            at = (_PADDING + 2 * dollar.width, y)
            canvas.text(text[2:], at, font=_FONT, room=room)
        elif start == 0 and text.startswith("== "):
            canvas.text(text, (_PADDING, y), font=_BOLD, room=room)
        elif text:
            colour = "warn" if "[-]" in text else "accent" if "[+]" in text else "soft"
            canvas.text(text, (_PADDING, y), font=_FONT, colour=colour, room=room)
