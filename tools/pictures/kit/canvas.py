"""A canvas: shapes and texts at pixels, which become an SVG document.

The canvas notes every text and every solid shape, and refuses a text that leaves its room or lies
over another text.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape

from tools.pictures.kit import colours
from tools.pictures.kit.lettering import CODE_SCALE, MONO, SANS, Font, runs, width

# The part of a line's height above and below its base line.
_ASCENT, _DESCENT = 0.78, 0.22
# Estimates are on the wide side; this much of an overlap is none.
_SLACK = 1.0


class DrawingError(Exception):
    """A picture that would not be readable: a text outside its box, an arrow through one."""

    def __init__(self, name: str, problems: list[str]) -> None:
        super().__init__(
            "\n".join([f"{name} cannot be drawn:", *(f"- {each}" for each in problems)])
        )
        self.problems = problems


@dataclass(frozen=True)
class Rect:
    """A place on the canvas, in pixels from its upper left corner."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Returns the width."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Returns the height."""
        return self.bottom - self.top

    @property
    def centre(self) -> tuple[float, float]:
        """Returns the point in the middle."""
        return (self.left + self.right) / 2, (self.top + self.bottom) / 2

    def grown(self, by: float) -> "Rect":
        """Returns the place with a margin around it; a negative margin shrinks it."""
        return Rect(self.left - by, self.top - by, self.right + by, self.bottom + by)

    def meets(self, other: "Rect") -> bool:
        """Returns whether the two places overlap."""
        return (
            self.left < other.right - _SLACK
            and other.left < self.right - _SLACK
            and self.top < other.bottom - _SLACK
            and other.top < self.bottom - _SLACK
        )

    def holds(self, other: "Rect") -> bool:
        """Returns whether the other place lies inside."""
        return (
            self.left <= other.left + _SLACK
            and self.top <= other.top + _SLACK
            and self.right >= other.right - _SLACK
            and self.bottom >= other.bottom - _SLACK
        )


@dataclass(frozen=True)
class Written:
    """A text on the canvas and the place that it takes."""

    text: str
    place: Rect


class Canvas:
    """Shapes and texts in the order in which they are painted."""

    def __init__(self) -> None:
        self.texts: list[Written] = []
        self.problems: list[str] = []
        self._parts: list[str] = []
        self._used: set[str] = set()
        self._depth = 1

    def rect(
        self, place: Rect, *, fill: str, edge: str = "none", radius: float = 6, dash: str = ""
    ) -> None:
        """Paints a rounded rectangle.

        Args:
            place: where.
            fill: a colour's name, or "none".
            edge: the colour of its border, or "none".
            radius: of its corners.
            dash: the border's dashes, as SVG writes them.
        """
        self._add(
            f'<rect x="{number(place.left)}" y="{number(place.top)}" width="{number(place.width)}" '
            f'height="{number(place.height)}" rx="{number(radius)}" '
            f"{self._painted(fill, edge)}{_dashes(dash)}/>"
        )

    def circle(
        self, centre: tuple[float, float], radius: float, *, fill: str, edge: str = "none"
    ) -> None:
        """Paints a disc.

        Args:
            centre: its middle.
            radius: in pixels.
            fill: a colour's name.
            edge: the colour of its border, or "none".
        """
        x, y = centre
        self._add(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="{number(radius)}" '
            f"{self._painted(fill, edge)}/>"
        )

    def path(
        self, data: str, *, colour: str, dash: str = "", thickness: float = 1.5, fill: str = "none"
    ) -> None:
        """Paints a line or an outline.

        Args:
            data: SVG's path data.
            colour: of the line, or "none".
            dash: the line's dashes, as SVG writes them.
            thickness: of the line.
            fill: of what it encloses, or "none".
        """
        self._add(
            f'<path d="{data}" {self._painted(fill, colour)} '
            f'stroke-width="{number(thickness)}"{_dashes(dash)}/>'
        )

    def line(
        self,
        start: tuple[float, float],
        end: tuple[float, float],
        *,
        colour: str,
        dash: str = "",
        thickness: float = 1,
    ) -> None:
        """Paints a straight line."""
        data = f"M{number(start[0])} {number(start[1])}L{number(end[0])} {number(end[1])}"
        self.path(data, colour=colour, dash=dash, thickness=thickness)

    def text(
        self,
        text: str,
        at: tuple[float, float],
        *,
        font: Font,
        colour: str = "ink",
        anchor: str = "start",
        room: Rect | None = None,
        halo: str = "",
    ) -> Rect:
        """Writes one line and returns the place that it takes.

        Args:
            text: code in it stands between backticks.
            at: the point on the base line that `anchor` speaks of.
            font: how it is set.
            colour: its name.
            anchor: "start", "middle" or "end".
            room: a place that it may not leave.
            halo: a colour that is painted around the letters, over lines below.
        """
        place = placed(text, at, font=font, anchor=anchor)
        if room is not None and not room.holds(place):
            self.problems.append(
                f"{text!r} needs {place.width:.0f} x {place.height:.0f} px "
                f"and has {room.width:.0f} x {room.height:.0f}"
            )
        self.texts.append(Written(text, place))
        attributes = ' font-weight="600"' if font.bold else ""
        if anchor != "start":
            attributes += f' text-anchor="{anchor}"'
        if halo:
            attributes += ' stroke-width="4" paint-order="stroke" stroke-linejoin="round"'
        self._add(
            f'<text x="{number(at[0])}" y="{number(at[1])}" font-size="{number(font.size)}" '
            f"{self._painted(colour, halo or 'none', *(['m'] if font.mono else []))}{attributes}>"
            f"{_spans(text, font)}</text>"
        )
        return place

    def open_group(self, name: str) -> None:
        """Begins a group of shapes with a CSS class of its own."""
        self._add(f'<g class="{name}">')
        self._depth += 1

    def close_group(self) -> None:
        """Ends the group."""
        self._depth -= 1
        self._add("</g>")

    def overlaps(self) -> list[str]:
        """Returns a problem for each pair of texts that lie over each other."""
        return [
            f"{one.text!r} lies over {other.text!r}"
            for index, one in enumerate(self.texts)
            for other in self.texts[index + 1 :]
            if one.place.meets(other.place)
        ]

    def svg(
        self, *, name: str, title: str, description: str, size: tuple[float, float], style: str = ""
    ) -> str:
        """Returns the SVG document.

        Args:
            name: of the picture, for messages.
            title: what a screen reader says first.
            description: what a screen reader says of its content.
            size: width and height in pixels.
            style: further CSS.

        Raises:
            DrawingError: a text has no room or lies over another.
        """
        wide, high = size
        edge = Rect(0, 0, wide, high)
        outside = [
            f"{each.text!r} leaves the picture" for each in self.texts if not edge.holds(each.place)
        ]
        problems = self.problems + outside + self.overlaps()
        if problems:
            raise DrawingError(name, problems)
        width_, height_ = number(wide), number(high)
        panel = edge.grown(-0.5)
        painted = self._painted("panel", "frame")
        css = (
            f"text{{font-family:{SANS};white-space:pre}}.m{{font-family:{MONO}}}.n{{fill:none}}"
            f"{self._rules(colours.LIGHT)}"
            f"@media (prefers-color-scheme: dark){{{self._rules(colours.DARK)}}}{style}"
        )
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width_}" height="{height_}" '
                f'viewBox="0 0 {width_} {height_}" role="img" aria-labelledby="title desc" '
                # For browsers that do not know the CSS of white space in pictures.
                'xml:space="preserve">',
                f'  <title id="title">{escape(title)}</title>',
                f'  <desc id="desc">{escape(description)}</desc>',
                f"  <style>{css}</style>",
                f'  <rect x="0.5" y="0.5" width="{number(panel.width)}" '
                f'height="{number(panel.height)}" rx="8" {painted}/>',
                *self._parts,
                "</svg>",
                "",
            ]
        )

    def _painted(self, fill: str, edge: str, *classes: str) -> str:
        """Returns the attribute with the classes of a shape's colours."""
        names = [] if fill == "none" else [f"f-{fill}"]
        names += [] if edge == "none" else [f"s-{edge}"]
        for name in names:
            if name[2:] not in colours.LIGHT:
                raise KeyError(name)
            self._used.add(name)
        if fill == "none":
            names.append("n")
        return f'class="{" ".join([*names, *classes])}"'

    def _rules(self, scheme: Mapping[str, str]) -> str:
        """Returns the CSS of the colours that are in use."""
        kinds = {"f": "fill", "s": "stroke"}
        return "".join(
            f".{name}{{{kinds[name[0]]}:{scheme[name[2:]]}}}" for name in sorted(self._used)
        )

    def _add(self, part: str) -> None:
        self._parts.append("  " * self._depth + part)


def placed(text: str, at: tuple[float, float], *, font: Font, anchor: str = "start") -> Rect:
    """Returns the place that a line takes.

    Args:
        text: code in it stands between backticks.
        at: the point on the base line that `anchor` speaks of.
        font: how it is set.
        anchor: "start", "middle" or "end".
    """
    wide = width(text, font)
    left = at[0] - {"start": 0.0, "middle": wide / 2, "end": wide}[anchor]
    return Rect(left, at[1] - _ASCENT * font.size, left + wide, at[1] + _DESCENT * font.size)


def number(value: float) -> str:
    """Returns a number as the files have it: at most two decimals, the same on every machine."""
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text in ("-0", "") else text


def _dashes(dash: str) -> str:
    return f' stroke-dasharray="{dash}"' if dash else ""


def _spans(text: str, font: Font) -> str:
    parts = []
    for run in runs(text):
        if run.code and not font.mono:
            size = number(font.size * CODE_SCALE)
            parts.append(f'<tspan class="m" font-size="{size}">{escape(run.text)}</tspan>')
        else:
            parts.append(escape(run.text))
    return "".join(parts)
