"""A picture of what happens over time: panels of lanes with bars, phases above and events below.

Times are plain numbers without a unit: a panel shows an order, and longer or shorter, not seconds.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from tools.pictures.kit.canvas import Canvas, Rect
from tools.pictures.kit.figure import Figure
from tools.pictures.kit.style import (
    GROUP,
    KINDS,
    LABEL,
    MARGIN,
    SMALL,
    TITLE,
    TONES,
    Kind,
    Tone,
)

_LANE = 36
_LANE_GAP = 10
_PHASE_LINE = 16


@dataclass(frozen=True)
class Bar:
    """What is the case on a lane for a while.

    Args:
        start: when it begins.
        end: when it ends.
        text: a word or a few.
        kind: "accent" for what the picture is about, "quiet" for what only waits.
    """

    start: float
    end: float
    text: str
    kind: Kind = "plain"


@dataclass(frozen=True)
class Lane:
    """One thing over time.

    Args:
        title: its name.
        bars: in order.
    """

    title: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Phase:
    """A part of the time, named above the lanes.

    Args:
        start: when it begins.
        end: when it ends.
        text: a line break begins a line.
    """

    start: float
    end: float
    text: str


@dataclass(frozen=True)
class Event:
    """A moment, as a line through the lanes with its name below.

    Args:
        at: when.
        text: a few words.
        tone: "warn" for what goes wrong.
        anchor: where the moment is in the text: "start", "middle" or "end".
    """

    at: float
    text: str
    tone: Tone = "plain"
    anchor: str = "middle"


@dataclass(frozen=True)
class Panel:
    """One course of events.

    Args:
        title: a sentence.
        lanes: from top to bottom.
        phases: above the lanes.
        events: through the lanes.
    """

    title: str
    lanes: Sequence[Lane]
    phases: Sequence[Phase] = ()
    events: Sequence[Event] = ()


@dataclass(frozen=True)
class Timeline(Figure):
    """A picture of courses of events below each other, on the same axis of time.

    Args:
        end: the last time.
        lane_title_width: pixels to the left of the axis.
    """

    panels: Sequence[Panel]
    end: float
    lane_title_width: float = 84

    panel_gap = 34
    note_gap = 24
    below = MARGIN

    def _x(self, time: float) -> float:
        left = MARGIN + self.lane_title_width
        return left + (self.width - MARGIN - left) * time / self.end

    def _paint(self, canvas: Canvas, panel: Panel, top: float) -> float:
        """Paints a panel and returns its lower edge."""
        canvas.text(panel.title, (MARGIN, top + 12), font=TITLE)
        top += 26
        lines = max((phase.text.count("\n") + 1 for phase in panel.phases), default=0)
        if panel.phases:
            top += 4
            for phase in panel.phases:
                self._paint_phase(canvas, phase, top, lines)
            top += lines * _PHASE_LINE + 14
        height = len(panel.lanes) * (_LANE + _LANE_GAP) - _LANE_GAP
        for event in panel.events:
            x = self._x(event.at)
            colour = TONES[event.tone][0]
            canvas.line(
                (x, top - 4), (x, top + height + 8), colour=colour, dash="3 3", thickness=1.5
            )
        for index, lane in enumerate(panel.lanes):
            self._paint_lane(canvas, lane, top + index * (_LANE + _LANE_GAP))
        top += height
        if panel.events:
            for event in panel.events:
                at = (self._x(event.at), top + 22)
                colour = TONES[event.tone][1]
                canvas.text(event.text, at, font=LABEL, colour=colour, anchor=event.anchor)
            top += 26
        return top

    def _paint_phase(self, canvas: Canvas, phase: Phase, top: float, lines: int) -> None:
        left, right = self._x(phase.start) + 2, self._x(phase.end) - 2
        bottom = top + lines * _PHASE_LINE + 4
        texts = phase.text.split("\n")
        first = bottom - 9 - _PHASE_LINE * (len(texts) - 1)
        for index, text in enumerate(texts):
            at = ((left + right) / 2, first + index * _PHASE_LINE)
            room = Rect(left, top - 20, right, bottom)
            canvas.text(text, at, font=LABEL, colour="soft", anchor="middle", room=room)
        canvas.line((left, bottom), (right, bottom), colour="line", thickness=1.5)
        for x in (left, right):
            canvas.line((x, bottom), (x, bottom + 4), colour="line", thickness=1.5)

    def _paint_lane(self, canvas: Canvas, lane: Lane, top: float) -> None:
        base = top + _LANE / 2 + 4.5
        room = Rect(MARGIN, top, MARGIN + self.lane_title_width, top + _LANE)
        canvas.text(lane.title, (MARGIN, base), font=GROUP, room=room)
        for bar in lane.bars:
            fill, edge, dash = KINDS[bar.kind]
            place = Rect(self._x(bar.start) + 2, top, self._x(bar.end) - 2, top + _LANE)
            # Its own ground, so that an event's line does not run through the text.
            canvas.rect(place, fill="panel" if fill == "none" else fill, edge=edge, dash=dash)
            if bar.text:
                at = (place.centre[0], base)
                colour = "soft" if bar.kind == "quiet" else "ink"
                canvas.text(
                    bar.text,
                    at,
                    font=SMALL,
                    colour=colour,
                    anchor="middle",
                    room=place.grown(-4),
                )
