"""What a diagram is made of: boxes, arrows between them, and groups around them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from tools.pictures.kit.routes import Way
from tools.pictures.kit.style import Kind, Tone


@dataclass(frozen=True)
class Box:
    """A box with a title and small text below it.

    Args:
        key: its name for arrows and groups.
        at: its column and its row, from 0.
        title: a few words.
        text: wrapped; code stands between backticks, and a line break begins a line.
        kind: "accent" for the picture's main message, "quiet" (dashed) for an outside or optional
            part, "warn" for a failure. "bare" is text without a box, centred in the height of its
            row.
        span: number of columns that it covers.
        rows: number of rows that it covers.
        number: number of a step, in a disc before the title.
    """

    key: str
    at: tuple[int, int]
    title: str
    text: str = ""
    kind: Kind = "plain"
    span: int = 1
    rows: int = 1
    number: int | None = None


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another.

    Args:
        source: the key of its first box.
        target: the key of its last box.
        label: a verb or a few words; a line break begins a line.
        tone: "accent" for the main way, "warn" for what goes wrong.
        dashed: for what happens sometimes.
        way: which sides it leaves and enters by, where the choice made by itself is not good.
        label_on: which straight part has the label, from 0; None is the longest.
        label_side: on which side of its line the label stands; None is above a level line and to
            the right of an upright one.
    """

    source: str
    target: str
    label: str = ""
    tone: Tone = "plain"
    dashed: bool = False
    way: Way = field(default_factory=Way)
    label_on: int | None = None
    label_side: Literal["above", "below", "left", "right"] | None = None


@dataclass(frozen=True)
class Group:
    """A tinted area around boxes, with a title: who owns them, or where they are.

    Args:
        title: a few words.
        members: keys of boxes.
    """

    title: str
    members: Sequence[str]
