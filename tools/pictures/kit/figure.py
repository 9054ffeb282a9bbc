"""What the plots share: panels, and a note below them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from tools.pictures.kit.canvas import Canvas
from tools.pictures.kit.lettering import wrap
from tools.pictures.kit.style import LABEL, LINE, MARGIN


@dataclass(frozen=True)
class Figure(ABC):
    """A picture of panels below each other.

    Args:
        name: of its file, without the ending.
        title: for screen readers.
        description: the content in words, for screen readers. A plot adds its values.
        panels: from top to bottom.
        note: small text below; wrapped.
        width: of the picture.
    """

    name: str
    title: str
    description: str
    panels: Sequence[Any]
    note: str = field(default="", kw_only=True)
    width: float = field(default=752, kw_only=True)

    panel_gap: ClassVar[int]
    note_gap: ClassVar[int]
    below: ClassVar[int] = MARGIN - 4

    def svg(self) -> str:
        """Returns the SVG document.

        Raises:
            DrawingError: a text does not fit.
        """
        canvas = Canvas()
        bottom = self._paint_panels(canvas)
        if self.note:
            bottom += self.note_gap
            for line in wrap(self.note, LABEL, self.width - 2 * MARGIN):
                canvas.text(line, (MARGIN, bottom + 12), font=LABEL, colour="soft")
                bottom += LINE
        return canvas.svg(
            name=self.name,
            title=self.title,
            description=f"{self.description} {self._values()}".strip(),
            size=(self.width, round(bottom + self.below)),
        )

    def _paint_panels(self, canvas: Canvas) -> float:
        """Paints the panels and returns their lower edge."""
        top: float = MARGIN
        for panel in self.panels:
            top = self._paint(canvas, panel, top) + self.panel_gap
        return top - self.panel_gap

    def _values(self) -> str:
        """Returns the plotted values in words."""
        return ""

    @abstractmethod
    def _paint(self, canvas: Canvas, panel: Any, top: float) -> float:
        """Paints a panel and returns its lower edge."""
