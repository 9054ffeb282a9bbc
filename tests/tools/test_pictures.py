"""The pictures of the documentation: they are up to date, readable, and the same everywhere."""

from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.report import significant
from tools.pictures import FOLDER, __main__, drawn, stale
from tools.pictures.kit import Arrow, Box, Diagram, Group, Way, bars, colours, lettering, lines
from tools.pictures.kit.canvas import Canvas, DrawingError, Rect
from tools.pictures.kit.lettering import Font
from tools.pictures.kit.scale import scale
from tools.pictures.kit.terminal import Terminal
from tools.pictures.kit.timeline import Bar, Event, Lane, Timeline
from tools.pictures.kit.timeline import Panel as Course
from tools.pictures.recording import TRANSCRIPT

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return drawn()


def test_the_committed_files_are_what_is_drawn(files: dict[str, str]) -> None:
    assert stale(files) == [], "run `make pictures`"


def test_every_picture_says_what_it_shows(files: dict[str, str]) -> None:
    for name, text in files.items():
        root = parsed(text)
        assert root.findtext(f"{SVG}title"), name
        assert len(root.findtext(f"{SVG}desc") or "") > 60, name
        assert len(text) < 60_000, name


def test_no_picture_asks_another_host_for_anything(files: dict[str, str]) -> None:
    for name, text in files.items():
        assert "href" not in text, name
        assert "url(" not in text, name


def test_every_picture_is_on_a_page(files: dict[str, str]) -> None:
    root = FOLDER.parents[1]
    pages = [
        root / "README.md",
        *(root / "docs").rglob("*.md"),
        *(root / "benchmarks").rglob("*.md"),
    ]
    shown = "".join(page.read_text("utf-8") for page in pages)
    assert [name for name in files if f"pictures/{name})" not in shown] == []


def test_a_missing_a_changed_and_a_foreign_file_are_stale(tmp_path: Path) -> None:
    (tmp_path / "changed.svg").write_text("old")
    (tmp_path / "foreign.svg").write_text("old")
    (tmp_path / "same.svg").write_text("same")
    files = {"changed.svg": "new", "missing.svg": "new", "same.svg": "same"}
    assert stale(files, tmp_path) == ["changed.svg", "foreign.svg", "missing.svg"]


def test_a_check_names_what_is_out_of_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(__main__, "drawn", lambda: {"one.svg": "<svg/>"})
    monkeypatch.setattr(__main__, "FOLDER", tmp_path)
    monkeypatch.setattr(__main__, "stale", lambda files: stale(files, tmp_path))
    assert __main__.main(["--check"]) == 1
    assert "docs/pictures/one.svg is out of date; `make pictures`" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    assert __main__.main([]) == 0
    assert (tmp_path / "one.svg").read_text() == "<svg/>"
    assert __main__.main(["--check"]) == 0


@pytest.mark.parametrize("scheme", [colours.LIGHT, colours.DARK], ids=["light", "dark"])
def test_text_stands_out_from_its_ground(scheme: dict[str, str]) -> None:
    low = {
        (text, ground): round(contrast(scheme[text], scheme[ground]), 2)
        for text, ground in colours.TEXT_ON
        if contrast(scheme[text], scheme[ground]) < 4.5
    }
    assert low == {}


def test_the_schemes_have_the_same_colours() -> None:
    assert colours.LIGHT.keys() == colours.DARK.keys()


def diagram(*boxes: Box, arrows: tuple[Arrow, ...] = (), groups: tuple[Group, ...] = ()) -> Diagram:
    return Diagram(
        name="drawing",
        title="A drawing",
        description="Boxes.",
        columns=(120, 120, 120),
        boxes=boxes,
        arrows=arrows,
        groups=groups,
    )


def problems(picture: Diagram) -> list[str]:
    with pytest.raises(DrawingError) as caught:
        picture.svg()
    return caught.value.problems


def test_text_is_wrapped_into_its_box() -> None:
    text = diagram(Box("one", (0, 0), "Title", "Four short words wrap.")).svg()
    assert "Four short words wrap." not in text
    assert ">Four short</text>" in text


def test_a_word_that_leaves_its_box_is_refused() -> None:
    box = Box("one", (0, 0), "Title", "`model_data_download_timeout_seconds`")
    assert "model_data_download_timeout_seconds" in problems(diagram(box))[0]


def test_an_arrow_goes_around_boxes_or_is_refused() -> None:
    boxes = [Box(key, (column, 0), key) for column, key in enumerate(("one", "two", "three"))]
    arrow = Arrow("one", "three")
    assert problems(diagram(*boxes, arrows=(arrow,))) == ["the arrow one -> three goes through two"]
    around = Arrow("one", "three", way=Way(leave="bottom", enter="bottom"))
    assert "<svg" in diagram(*boxes, arrows=(around,)).svg()


def test_a_label_over_a_box_is_refused() -> None:
    boxes = [Box("one", (0, 0), "One"), Box("two", (1, 0), "Two")]
    arrow = Arrow("one", "two", "a label that is wider than the gap")
    assert any("lies over one" in each for each in problems(diagram(*boxes, arrows=(arrow,))))


def test_a_group_over_a_stranger_is_refused() -> None:
    boxes = [Box(key, (column, 0), key) for column, key in enumerate(("one", "two", "three"))]
    group = Group("Ends", ("one", "three"))
    assert problems(diagram(*boxes, groups=(group,))) == ["the group 'Ends' lies over two"]


def test_boxes_in_one_place_are_refused() -> None:
    boxes = [Box("one", (0, 0), "One", span=2), Box("two", (1, 0), "Two")]
    assert problems(diagram(*boxes))[0] == "two lies over one"


def test_texts_over_each_other_are_refused() -> None:
    canvas = Canvas()
    canvas.text("first", (10, 20), font=Font())
    canvas.text("second", (20, 22), font=Font())
    with pytest.raises(DrawingError, match="'first' lies over 'second'"):
        canvas.svg(name="x", title="x", description="x", size=(100, 40))


def test_text_outside_the_picture_is_refused() -> None:
    canvas = Canvas()
    canvas.text("a long line", (60, 20), font=Font())
    with pytest.raises(DrawingError, match="leaves the picture"):
        canvas.svg(name="x", title="x", description="x", size=(100, 40))


def test_a_place_beside_another_does_not_meet_it() -> None:
    assert not Rect(0, 0, 10, 10).meets(Rect(10, 0, 20, 10))
    assert Rect(0, 0, 10, 10).meets(Rect(8, 0, 20, 10))


def test_code_is_wider_than_text_and_never_broken() -> None:
    font = Font(13)
    assert lettering.width("`iiii`", font) > lettering.width("iiii", font)
    assert lettering.wrap("see `cdk deploy it` there", font, 60) == [
        "see",
        "`cdk deploy it`",
        "there",
    ]


def test_an_elbow_has_right_angles_and_ends_at_the_box() -> None:
    boxes = [Box("one", (0, 0), "One"), Box("two", (2, 1), "Two")]
    text = diagram(*boxes, arrows=(Arrow("one", "two", way=Way(leave="right", enter="top")),)).svg()
    [way] = [
        each for each in parsed(text).iter(f"{SVG}path") if each.get("d", "").startswith("M144")
    ]
    assert way.get("d") == "M144 46L446 46Q452 46 452 52L452 106"


@pytest.mark.parametrize(
    ("greatest", "ticks"),
    [
        (1.23, ["0", "0.5", "1.0", "1.5"]),
        (9.4, ["0", "2", "4", "6", "8", "10"]),
        (41.5, ["0", "10", "20", "30", "40", "50"]),
        (1000, ["0", "200", "400", "600", "800", "1,000"]),
    ],
)
def test_ticks_are_round_and_the_last_is_not_below_the_values(
    greatest: float, ticks: list[str]
) -> None:
    axis = scale(greatest, start_pixel=0, end_pixel=100, most_ticks=5)
    assert [axis.label(tick) for tick in axis.ticks()] == ticks
    assert axis.at(axis.end) == 100


def test_values_have_three_digits() -> None:
    assert [significant(each) for each in (0.656, 1.234, 12.34, 1234.5)] == [
        "0.656",
        "1.23",
        "12.3",
        "1,234",
    ]


def test_labels_of_lines_that_end_together_stand_apart() -> None:
    series = [
        lines.Series(name, [lines.Value("1", 10), lines.Value("2", 10 + index / 100)])
        for index, name in enumerate(("one", "two", "three"))
    ]
    text = lines.Lines(
        name="plot",
        title="A plot",
        description="Lines.",
        place_title="clients",
        panels=[lines.Panel("Rates", "per second", ["1", "2"], series)],
    ).svg()
    root = parsed(text)
    heights = sorted(
        float(each.get("y", ""))
        for each in root.iter(f"{SVG}text")
        if each.text in ("one", "two", "three")
    )
    assert len(heights) == 3
    assert min(b - a for a, b in pairwise(heights)) >= 15
    assert "Rates: one: 10.0 at 1, 10.0 at 2." in (root.findtext(f"{SVG}desc") or "")


def test_a_bar_and_its_interval_are_as_long_as_their_values() -> None:
    text = bars.Bars(
        name="plot",
        title="A plot",
        description="Bars.",
        panels=[bars.Panel("Rates", "per second", [("", [bars.Row("one", 5, "5.00", 4, 10)])])],
    ).svg()
    root = parsed(text)
    end = 752 - 24 - 90
    start = 24 + 230
    assert float(list(root.iter(f"{SVG}rect"))[1].get("width", "")) == (end - start) / 2
    assert f"M{start + (end - start) * 0.4:g} " in text
    assert root.findtext(f"{SVG}desc") == "Bars. Rates one: 5.00."


def test_a_bar_too_short_for_its_text_is_refused() -> None:
    lane = Lane("Fleet", [Bar(0, 1, "serves the requests")])
    course = Course("Short", [lane], events=[Event(1, "end")])
    timeline = Timeline(name="t", title="T", description="D", panels=[course], end=100)
    with pytest.raises(DrawingError, match="'serves the requests' needs"):
        timeline.svg()


def test_a_terminal_breaks_long_lines_and_stands_still_on_request() -> None:
    steps = [["$ echo", "x" * 130], ["== Next"]]
    text = Terminal(name="t", title="T", description="D", steps=steps).svg()
    assert f">{'x' * 100}<" in text
    assert f">{'x' * 30}<" in text
    assert text.count("animation:") == 1
    assert "@media (prefers-reduced-motion: no-preference){.t{animation:" in text


def test_the_demo_shows_lines_of_the_recording_alone(files: dict[str, str]) -> None:
    recorded = TRANSCRIPT.read_text("utf-8").splitlines()
    root = parsed(files["demo.svg"])
    shown = [each.text or "" for each in root.iter(f"{SVG}text")]
    commands = [each for each in shown if each.startswith(("cdk ", "slipway "))]
    assert len(commands) == 7
    assert all(f"$ {each}" in recorded for each in commands)
    assert [
        each
        for each in shown
        if each.startswith("  ") and not any(each in line for line in recorded)
    ] == []


def parsed(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)  # noqa: S314  # drawn here


def contrast(one: str, other: str) -> float:
    """Returns the contrast of two colours as WCAG 2 defines it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    channels = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
