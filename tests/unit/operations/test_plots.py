"""Plots: the same SVG for the same values, with gaps, and readable without eyes."""

from datetime import UTC, datetime
from xml.etree import ElementTree

import pytest

from slipway.operations.plots import Plot, Series, Values, as_svg

START = datetime(2026, 11, 28, 20, 0, tzinfo=UTC)
SMALL = """\
<svg class="plot" role="img" aria-labelledby="plot-requests-title plot-requests-desc" \
width="560" height="220" viewBox="0 0 560 220">
<title id="plot-requests-title">Requests, a minute</title>
<desc id="plot-requests-desc">\
From 2026-11-28 20:00 to 2026-11-28 20:05 UTC. &lt;all&gt;: 2 to 4, the latest 3.</desc>
<text class="title" x="12" y="18">Requests</text>
<text x="12" y="34">a minute</text>
<line class="axis" x1="56" x2="548" y1="190.0" y2="190.0"/>
<text class="end" x="48" y="194">0</text>
<line x1="56" x2="548" y1="155.0" y2="155.0"/>
<text class="end" x="48" y="159">1</text>
<line x1="56" x2="548" y1="120.0" y2="120.0"/>
<text class="end" x="48" y="124">2</text>
<line x1="56" x2="548" y1="85.0" y2="85.0"/>
<text class="end" x="48" y="89">3</text>
<line x1="56" x2="548" y1="50.0" y2="50.0"/>
<text class="end" x="48" y="54">4</text>
<line x1="56.0" x2="56.0" y1="190" y2="50"/>
<text class="middle" x="56" y="207">20:00</text>
<line x1="179.0" x2="179.0" y1="190" y2="50"/>
<text class="middle" x="179" y="207">20:01</text>
<line x1="302.0" x2="302.0" y1="190" y2="50"/>
<text class="middle" x="302" y="207">20:02</text>
<line x1="425.0" x2="425.0" y1="190" y2="50"/>
<text class="middle" x="425" y="207">20:03</text>
<line x1="548.0" x2="548.0" y1="190" y2="50"/>
<text class="middle" x="534" y="207">20:04</text>
<text x="12" y="207">UTC</text>
<line class="line line0" x1="487" x2="507" y1="14" y2="14"/>
<text x="513" y="18">&lt;all&gt;</text>
<polyline class="line line0" points="56.0,120.0 179.0,50.0"/>
<circle class="line0" cx="425.0" cy="85.0" r="2"/>
</svg>
"""


def plot(*values: Values, period_seconds: int = 60) -> Plot:
    series = tuple(map(Series, ("<all>", "<5XX>"), values))
    return Plot("Requests", "a minute", series, START, period_seconds)


def parsed(plot: Plot) -> ElementTree.Element:
    return ElementTree.fromstring(as_svg(plot))  # noqa: S314  # written by this project


def test_gaps_are_no_line_and_nothing_known_is_said():
    assert as_svg(plot([2, 4, None, 3, None])) == SMALL
    root = parsed(plot([None, None], [None, None]))
    assert "no data" in [each.text for each in root.iter("text")]
    assert (root.findtext("desc") or "").endswith("<all>: no data. <5XX>: no data.")
    assert corners(root) == []


@pytest.mark.parametrize(
    ("values", "period_seconds", "first", "count"),
    [
        ([1.0] * 60, 60, "20:00", 6),
        ([1e-4] * 288, 300, "20:00", 6),
        ([4e6] * 168, 3600, "11-29", 7),
        ([0.0] * 3, 60, "20:00", 3),
    ],
)
def test_an_axis_has_few_round_labels(values, period_seconds, first, count):
    root = parsed(plot(values, period_seconds=period_seconds))
    texts = [each.text or "" for each in root.iter("text") if each.get("y") == "207"]
    assert (texts[0], len(texts) - 1, texts[-1]) == (first, count, "UTC")
    upright = [each for each in root.iter("text") if each.get("class") == "end"]
    assert 2 <= len(upright) <= 6
    assert all(50 <= float(y) <= 190 for y in corners(root))


def corners(root: ElementTree.Element) -> list[str]:
    points = [each.get("points", "").split() for each in root.iter("polyline")]
    return [point.partition(",")[2] for run in points for point in run]
