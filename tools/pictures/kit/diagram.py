"""A picture of boxes and arrows, laid out in columns and rows.

```python
PICTURES = [
    Diagram(
        name="publish",
        title="Publishing a model",
        description="slipway publish sends files to S3 and writes the lock file.",
        columns=(170, 170),
        boxes=[
            Box("files", (0, 0), "Model files", "A folder or a commit of the Hub."),
            Box("bucket", (1, 0), "Artifact bucket", "`artifacts/DIGEST/`", kind="accent"),
        ],
        arrows=[Arrow("files", "bucket", "publish")],
    )
]
```

Boxes of a row are equally high. Text is wrapped. A picture that cannot be read is refused. Examples
are a text that leaves its box, a box over another, or an arrow through a box. Labels may not lie
over a box or over another text.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tools.pictures.kit import routes
from tools.pictures.kit.canvas import Canvas, DrawingError, Rect, placed
from tools.pictures.kit.lettering import Font, wrap
from tools.pictures.kit.parts import Arrow, Box, Group
from tools.pictures.kit.style import (
    GROUP,
    KINDS,
    LABEL,
    LINE,
    MARGIN,
    MAX_WIDTH,
    SMALL,
    TITLE,
    TONES,
)

_PADDING = 14
_TITLE_GAP = 4
_GROUP_PADDING = 14
_GROUP_TITLE = 24
_BADGE = 10


@dataclass(frozen=True)
class Diagram:
    """A picture of boxes and arrows.

    Args:
        name: of its file, without the ending.
        title: for screen readers.
        description: the same content in words, for screen readers.
        columns: the width of each column, in pixels.
        boxes: in reading order.
        arrows: between them.
        groups: around them; groups do not overlap.
        column_gap: pixels between two columns, or the pixels of each gap. Labels stand there.
        row_gap: pixels between two rows, or the pixels of each gap.
        note: small text below the picture, such as what its colours mean; wrapped.
    """

    name: str
    title: str
    description: str
    columns: Sequence[float]
    boxes: Sequence[Box]
    arrows: Sequence[Arrow] = ()
    groups: Sequence[Group] = ()
    column_gap: float | Sequence[float] = 64
    row_gap: float | Sequence[float] = 44
    note: str = ""

    def svg(self) -> str:
        """Returns the SVG document.

        Raises:
            DrawingError: with everything that could not be read.
        """
        return _Painter(self).svg()


class _Painter:
    """Lays a diagram out and paints it."""

    def __init__(self, diagram: Diagram) -> None:
        self._diagram = diagram
        self._canvas = Canvas()
        self._problems: list[str] = []
        self._places = self._laid_out()
        self._corners = [
            routes.points(self._places[arrow.source], self._places[arrow.target], arrow.way)
            for arrow in diagram.arrows
        ]
        self._labels = [
            self._label_places(arrow, corners)
            for arrow, corners in zip(diagram.arrows, self._corners, strict=True)
        ]

    def svg(self) -> str:
        """Returns the document."""
        diagram = self._diagram
        self._move_into_view()
        for group in diagram.groups:
            self._paint_group(group)
        for box in diagram.boxes:
            self._paint_box(box)
        for arrow, corners, labels in zip(diagram.arrows, self._corners, self._labels, strict=True):
            self._paint_arrow(arrow, corners, labels)
        self._paint_note()
        self._check()
        if self._problems:
            raise DrawingError(diagram.name, self._problems)
        return self._canvas.svg(
            name=diagram.name,
            title=diagram.title,
            description=diagram.description,
            size=self._size,
        )

    def _laid_out(self) -> dict[str, Rect]:
        """Returns the place of each box, from the corner of the first."""
        diagram = self._diagram
        lefts = _starts(diagram.columns, _gaps(diagram.column_gap, len(diagram.columns)))
        count = max(box.at[1] + box.rows for box in diagram.boxes)
        gaps = _gaps(diagram.row_gap, count)
        heights = [0.0] * count
        for rows in sorted({box.rows for box in diagram.boxes}):
            for box in diagram.boxes:
                if box.rows != rows:
                    continue
                inside = range(box.at[1], box.at[1] + rows)
                have = sum(heights[row] for row in inside) + sum(gaps[row] for row in inside[:-1])
                missing = self._height(box) - have
                if missing > 0:
                    heights[inside[-1]] += missing
        tops = _starts(heights, gaps)
        places: dict[str, Rect] = {}
        for box in diagram.boxes:
            column, row = box.at
            last = row + box.rows - 1
            left = lefts[column]
            place = Rect(left, tops[row], left + self._width(box), tops[last] + heights[last])
            self._problems += [
                f"{box.key} lies over {key}" for key, other in places.items() if other.meets(place)
            ]
            places[box.key] = place
        return places

    def _width(self, box: Box) -> float:
        columns = self._diagram.columns[box.at[0] : box.at[0] + box.span]
        gaps = _gaps(self._diagram.column_gap, len(self._diagram.columns))
        return sum(columns) + sum(gaps[box.at[0] : box.at[0] + box.span - 1])

    def _height(self, box: Box) -> float:
        inner = self._width(box) - 2 * _padding(box)
        lines = wrap(box.title, TITLE, inner - _indent(box)) if box.title else []
        small = wrap(box.text, SMALL, inner) if box.text else []
        gap = _TITLE_GAP if lines and small else 0
        return 2 * _padding(box) + LINE * (len(lines) + len(small)) + gap - 2

    def _label_places(self, arrow: Arrow, corners: list[routes.Point]) -> list[tuple[str, Rect]]:
        """Returns the lines of an arrow's label and where they stand."""
        if not arrow.label:
            return []
        if arrow.label_on is None:
            start, end = routes.longest(corners)
        else:
            start, end = corners[arrow.label_on], corners[arrow.label_on + 1]
        middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        lines = arrow.label.split("\n")
        level = abs(start[1] - end[1]) < 0.01
        side = arrow.label_side or ("above" if level else "right")
        if side in ("above", "below"):
            first = middle[1] - 7 - 16 * (len(lines) - 1) if side == "above" else middle[1] + 17
            x, anchor = middle[0], "middle"
        else:
            first = middle[1] + 4 - 8 * (len(lines) - 1)
            x, anchor = (middle[0] + 9, "start") if side == "right" else (middle[0] - 9, "end")
        return [
            (line, placed(line, (x, first + 16 * index), font=LABEL, anchor=anchor))
            for index, line in enumerate(lines)
        ]

    def _move_into_view(self) -> None:
        """Puts the margin around everything."""
        everything = [
            *self._places.values(),
            *(self._area(group) for group in self._diagram.groups),
            *(place for label in self._labels for _, place in label),
            *(part for corners in self._corners for part in routes.segments(corners)),
        ]
        x = MARGIN - min(place.left for place in everything)
        y = MARGIN - min(place.top for place in everything)
        self._size = (
            round(max(place.right for place in everything) + x + MARGIN),
            round(max(place.bottom for place in everything) + y + MARGIN),
        )
        if self._size[0] > MAX_WIDTH:
            self._problems.append(f"it is {self._size[0]} px wide; pages show {MAX_WIDTH}")
        self._places = {key: _moved(place, x, y) for key, place in self._places.items()}
        self._corners = [[(px + x, py + y) for px, py in corners] for corners in self._corners]
        self._labels = [
            [(line, _moved(place, x, y)) for line, place in label] for label in self._labels
        ]

    def _area(self, group: Group) -> Rect:
        members = [self._places[key] for key in group.members]
        return Rect(
            min(place.left for place in members) - _GROUP_PADDING,
            min(place.top for place in members) - _GROUP_PADDING - _GROUP_TITLE,
            max(place.right for place in members) + _GROUP_PADDING,
            max(place.bottom for place in members) + _GROUP_PADDING,
        )

    def _paint_group(self, group: Group) -> None:
        area = self._area(group)
        self._canvas.rect(area, fill="group", edge="frame", radius=8)
        at = (area.left + _GROUP_PADDING, area.top + 23)
        self._canvas.text(group.title, at, font=GROUP, colour="soft", room=area.grown(-8))
        for box in self._diagram.boxes:
            if box.key not in group.members and self._places[box.key].meets(area):
                self._problems.append(f"the group {group.title!r} lies over {box.key}")

    def _paint_box(self, box: Box) -> None:
        place = self._places[box.key]
        padding = _padding(box)
        if box.kind != "bare":
            fill, edge, dash = KINDS[box.kind]
            self._canvas.rect(place, fill=fill, edge=edge, dash=dash)
        room = place.grown(2 - padding)
        indent = _indent(box)
        top = place.top
        if not box.text or box.kind == "bare":
            top += (place.height - self._height(box)) / 2 + 1
        base = top + padding + 11
        if box.number is not None:
            centre = (place.left + padding + _BADGE, base - 5)
            self._canvas.circle(centre, _BADGE, fill="accent")
            self._canvas.text(
                str(box.number),
                (centre[0], base - 0.7),
                font=Font(12, bold=True),
                colour="panel",
                anchor="middle",
            )
        inner = place.width - 2 * padding
        for line in wrap(box.title, TITLE, inner - indent) if box.title else ():
            at = (place.left + padding + indent, base)
            self._canvas.text(line, at, font=TITLE, room=room)
            base += LINE
        base += _TITLE_GAP if box.title else 0
        for line in wrap(box.text, SMALL, inner) if box.text else ():
            if line:
                at = (place.left + padding, base)
                self._canvas.text(line, at, font=SMALL, colour="soft", room=room)
            base += LINE

    def _paint_arrow(
        self, arrow: Arrow, corners: list[routes.Point], labels: list[tuple[str, Rect]]
    ) -> None:
        line, letters = TONES[arrow.tone]
        self._canvas.path(
            routes.path(corners), colour=line, dash="5 4" if arrow.dashed else "", thickness=1.5
        )
        self._canvas.path(routes.head(corners), colour="none", fill=line)
        for text, place in labels:
            base = place.top + 0.78 * LABEL.size
            self._canvas.text(
                text, (place.left, base), font=LABEL, colour=letters, halo=self._ground(place)
            )

    def _paint_note(self) -> None:
        if not self._diagram.note:
            return
        wide, high = self._size
        lines = wrap(self._diagram.note, LABEL, wide - 2 * MARGIN)
        for index, line in enumerate(lines):
            at = (MARGIN, high + 10 + LINE * index)
            self._canvas.text(line, at, font=LABEL, colour="soft")
        self._size = (wide, high + LINE * len(lines) + 12)

    def _ground(self, place: Rect) -> str:
        """Returns the colour behind a label, which keeps a crossing line off its letters."""
        areas = [self._area(group) for group in self._diagram.groups]
        return "group" if any(area.meets(place) for area in areas) else "panel"

    def _check(self) -> None:
        """Notes arrows through boxes and labels over boxes."""
        for arrow, corners, labels in zip(
            self._diagram.arrows, self._corners, self._labels, strict=True
        ):
            name = f"the arrow {arrow.source} -> {arrow.target}"
            for box, place in self._places.items():
                for part in routes.segments(corners):
                    inside = (
                        replace(place).grown(-2) if box in (arrow.source, arrow.target) else place
                    )
                    if inside.meets(part):
                        self._problems.append(f"{name} goes through {box}")
                        break
                self._problems += [
                    f"the label {text!r} of {name[4:]} lies over {box}"
                    for text, where in labels
                    if where.meets(place)
                ]
            for other, way in zip(self._diagram.arrows, self._corners, strict=True):
                if other is arrow:
                    continue
                self._problems += [
                    f"the arrow {other.source} -> {other.target} goes through the label {text!r}"
                    for text, where in labels
                    if any(where.meets(part) for part in routes.segments(way))
                ]


def _padding(box: Box) -> float:
    return 0 if box.kind == "bare" else _PADDING


def _indent(box: Box) -> float:
    return 0 if box.number is None else 2 * _BADGE + 8


def _gaps(gap: float | Sequence[float], count: int) -> list[float]:
    """Returns the gap behind each of so many columns or rows."""
    if isinstance(gap, int | float):
        return [float(gap)] * count
    return [*(float(each) for each in gap), *([0.0] * (count - len(gap)))]


def _starts(sizes: Sequence[float], gaps: Sequence[float]) -> list[float]:
    starts, at = [], 0.0
    for size, gap in zip(sizes, gaps, strict=True):
        starts.append(at)
        at += size + gap
    return starts


def _moved(place: Rect, x: float, y: float) -> Rect:
    return Rect(place.left + x, place.top + y, place.right + x, place.bottom + y)
