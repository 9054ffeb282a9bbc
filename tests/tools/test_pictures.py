"""The pictures of the documentation: they are up to date and readable."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from slipway.operations.plots import axis_to
from tools.pictures import FOLDER, pictures
from tools.pictures.drawing import CSS
from tools.pictures.plots import Panel, Row, Series, Value, bars_picture, lines_picture

RECORDING = FOLDER.parents[1] / "tools" / "pictures" / "demo.txt"
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted(FOLDER.glob("*.svg"))
# Each ground, and the colours of the text that stands on it.
TEXT_ON = {
    "panel": ("ink", "soft", "accent", "warn"),
    "group": ("ink", "soft", "accent"),
    "box": ("ink", "soft"),
    "tint": ("ink", "soft"),
    "accent": ("panel",),
}
# The size of a text by its class, and an average letter's part of it.
SIZES = {"title": 14.0, "label": 12.5, "small": 12.0, "number": 12.0}
LETTER, LETTER_OF_CODE = 0.48, 0.6
PLOT = {"title": "A plot", "description": "A description.", "note": ""}


def test_the_committed_files_are_up_to_date():
    written = pictures()
    stale = [name for name in written if (FOLDER / name).read_text("utf-8") != written[name]]
    assert stale == [], "run `make pictures`"


def test_every_picture_is_on_a_page_and_says_what_it_shows():
    root = FOLDER.parents[1]
    pages = [root / "README.md", *root.glob("docs/**/*.md"), *root.glob("benchmarks/**/*.md")]
    shown = "".join(page.read_text("utf-8") for page in pages)
    for path in PICTURES:
        picture = parsed(path.read_text("utf-8"))
        assert f"pictures/{path.name})" in shown, path.name
        assert picture.findtext(f"{SVG}title"), path.name
        assert len(picture.findtext(f"{SVG}desc") or "") > 60, path.name


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_picture_has_only_known_classes_and_asks_no_other_host(path):
    text = path.read_text("utf-8")
    style, body = text.rsplit("</style>", 1)
    known = set(re.findall(r"[.]([a-z][a-z0-9-]*)", style))
    used = " ".join(re.findall(r'class="([^"]*)"', body)).split()
    assert set(used) - known <= {"step"}
    assert "href" not in text
    assert set(re.findall(r"url\((.)", text)) == {"#"}
    assert ("arrow" in used) == ('id="head"' in body)
    assert ("arrow accent" in body) == ('id="accent-head"' in body)


@pytest.mark.parametrize("path", PICTURES, ids=lambda path: path.stem)
def test_a_text_stays_in_its_box(path):
    picture = parsed(path.read_text("utf-8"))
    boxes = [
        tuple(float(each.get(name, "")) for name in ("x", "y", "width", "height"))
        for each in picture.iter(f"{SVG}rect")
        if each.get("class", "").split()[0] in ("panel", "box")
    ]
    for text in picture.iter(f"{SVG}text"):
        x, y = float(text.get("x", "")), float(text.get("y", ""))
        classes = text.get("class", "").split()
        width = written_width(text, classes)
        if "middle" in classes or "number" in classes:
            x -= width / 2
        elif "end" in classes:
            x -= width
        # The innermost box is painted last.
        left, _, box_width, _ = next(
            box
            for box in reversed(boxes)
            if box[0] <= x and box[1] <= y <= box[1] + box[3]
            if x <= box[0] + box[2]
        )
        assert x >= left, "".join(text.itertext())
        assert x + width <= left + box_width, "".join(text.itertext())


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(scheme):
    colours = dict(re.findall(r"--([a-z]+): (#[0-9a-f]{6});", CSS.split("@media")[scheme]))
    low = [
        (text, ground)
        for ground, texts in TEXT_ON.items()
        for text in texts
        if contrast(colours[text], colours[ground]) < 4.5
    ]
    assert low == []


@pytest.mark.parametrize(
    ("greatest", "ticks"),
    [
        (1.23, ["0", "0.5", "1.0", "1.5"]),
        (41.5, ["0", "10", "20", "30", "40", "50"]),
        (1000, ["0", "200", "400", "600", "800", "1,000"]),
    ],
)
def test_ticks_are_round_and_the_last_is_not_below_the_values(greatest, ticks):
    axis = axis_to(greatest, 0, 100, most_ticks=5)
    assert [label for _, label in axis.ticks()] == ticks
    assert axis.at(axis.end) == 100


def test_lines_that_end_together_have_labels_apart():
    series = [
        Series(name, "", [Value(1, 10, 10, 10), Value(2, end, end, end)])
        for name, end in (("one", 10), ("two", 10.01), ("three", 10.02))
    ]
    words = {**PLOT, "unit": "per second", "numbers_title": "clients", "label_width": 100}
    picture = parsed(lines_picture(words, {"Rates": series}))
    ends = [each for each in picture.iter(f"{SVG}text") if each.text in ("one", "two", "three")]
    heights = sorted(float(each.get("y", "")) for each in ends)
    assert all(lower - upper >= 15 for upper, lower in pairwise(heights))
    assert "Rates: one: 10.0 at 1, 10.0 at 2." in (picture.findtext(f"{SVG}desc") or "")


def test_a_bar_and_its_interval_are_as_long_as_their_values():
    panel = Panel("Rates", "per second", {"": [Row("one", 5, 4, 10, "5.00")]})
    text = bars_picture({**PLOT, "label_width": 230, "value_width": 90}, [panel])
    picture = parsed(text)
    start, end = 24 + 230, 752 - 24 - 90
    _, bar = picture.iter(f"{SVG}rect")
    assert float(bar.get("width", "")) == (end - start) / 2
    assert f'x1="{start + (end - start) * 0.4:g}"' in text
    assert (picture.findtext(f"{SVG}desc") or "").strip() == "A description. Rates one: 5.00."


def test_the_demo_shows_lines_of_the_recording_alone():
    recorded = RECORDING.read_text("utf-8")
    demo = parsed((FOLDER / "demo.svg").read_text("utf-8"))
    shown = [each.text or "" for each in demo.iter(f"{SVG}text")]
    assert sum(each.startswith(("cdk ", "slipway ")) for each in shown) == 7
    assert [each for each in shown[1:] if each not in recorded] == []


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314  # a file of this project


def written_width(text: ElementTree.Element, classes: list[str]) -> float:
    """Returns about how many pixels a line takes."""
    size = next((SIZES[each] for each in classes if each in SIZES), 13.0)
    code = sum(len(span.text or "") for span in text)
    letters = sum(map(len, text.itertext())) - code
    return size * (letters * (LETTER_OF_CODE if "code" in classes else LETTER) + code * 0.55)


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours as WCAG 2 defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
