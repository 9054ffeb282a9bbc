"""Positions survive, and no bytes whatever bring the reader down."""

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway.config import document
from slipway.config.document import Document, read_document
from slipway.errors import Kind, Location, UserError
from tests.support.projects import refusal


@pytest.fixture
def read(tmp_path):
    def read(text: str | bytes) -> Document:
        path = tmp_path / "x.yaml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_document(path, "x.yaml")

    return read


# What is wrong, and what to do about it.
REMEDIES = {
    "cannot be read": "Make a readable file of it, or remove it.",
    "the limit is": "Shorten it: weights and data are files of their own, which `artifacts` names.",
    "byte 0x89": "Save it as UTF-8.",
    "in Latin-1": "Save it as UTF-8 in your editor, or convert it: "
    "`iconv -f WINDOWS-1252 -t UTF-8 x.yaml > converted.yaml`.",
    "is UTF-16 text": "Save it as UTF-8 in your editor, or convert it: "
    "`iconv -f UTF-16 -t UTF-8 x.yaml > converted.yaml`.",
    "is UTF-16LE text": "Save it as UTF-8 in your editor, or convert it: "
    "`iconv -f UTF-16LE -t UTF-8 x.yaml > converted.yaml`.",
    "is UTF-32 text": "Save it as UTF-8 in your editor, or convert it: "
    "`iconv -f UTF-32 -t UTF-8 x.yaml > converted.yaml`.",
    "second YAML document": "Remove this line, or move the lines below it into a file of their "
    "own.",
    "not YAML": "Correct it there: spaces for indentation, no tabs, and quotes around a text with "
    "`: ` or ` #`.",
    "a mapping is needed": "Write `KEY: VALUE` lines; docs/reference.md lists the keys.",
    "levels deep": "Write it flatter; docs/reference.md shows how deep the sections go.",
    "aliases are expanded": "Write out what is needed: an alias of aliases grows with every level.",
    "YAML cannot read": "Put it in quotes if it is a text, and remove a tag (`!...`) before it.",
    "merges": "Merge a mapping that has an anchor: `<<: *NAME`.",
    "not a text": "Write the key as a plain word.",
}


def report(read, text: str | bytes) -> str:
    (problem,) = refusal(read, text).problems
    assert problem.kind is Kind.SHAPE
    [remedy] = [text for part, text in REMEDIES.items() if part in problem.message]
    assert problem.remedy == remedy
    return f"{problem.location}: {problem.message}"


def test_every_field_and_item_has_its_place_or_its_nearest_parents(read):
    found = read("a: 1\nb:\n  c: [x, y]\n  d:\n    - e: 2\n")
    assert found.content == {"a": 1, "b": {"c": ["x", "y"], "d": [{"e": 2}]}}
    assert {field: (at.line, at.column) for field, at in found.positions.items()} == {
        ("a",): (1, 1),
        ("b",): (2, 1),
        ("b", "c"): (3, 3),
        ("b", "c", 0): (3, 7),
        ("b", "c", 1): (3, 10),
        ("b", "d"): (4, 3),
        ("b", "d", 0): (5, 7),
        ("b", "d", 0, "e"): (5, 7),
    }
    found = read("a: 1\nb:\n  c: 2\n")
    assert found.locate(("b", "missing", 0)) == Location("x.yaml", 2, 1)
    assert found.locate(("missing",)) == Location("x.yaml", 1, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_lines_are_counted_whatever_ends_them(read, end):
    found = read(end.join(["a: 1", "", "b: 2", ""]))
    assert found.content == {"a": 1, "b": 2}
    assert found.positions[("b",)] == Location("x.yaml", 3, 1)
    # A byte order mark is not part of the first key.
    assert read(b"\xef\xbb\xbfa: 1").content == {"a": 1}


def test_numbers_are_read_as_yaml_1_2_reads_them(read):
    found = read(
        "a: 5e-1\nb: 124.4e6\nc: 1E3\nd: .5e+1\ne: 1e400\nf: '5e-1'\ng: 12:30\nh: 1.0\ni: -2e2\n"
        "j: 1e999999999\nk: 0\nl: 07\nm: 0x1F\nn: 1e-2\no: 1e22\n"
    )
    infinite = float("inf")
    assert list(found.content.values()) == [
        0.5, 124_400_000, 1000, 5, infinite, "5e-1", "12:30", 1.0, -200, infinite, 0, 7, 31, 0.01,
        1e22,
    ]  # fmt: skip
    kinds = {key: type(value) for key, value in found.content.items()}
    assert kinds["b"] is kinds["c"] is kinds["d"] is int
    assert kinds["h"] is kinds["o"] is float
    assert found.problems == ()


def test_a_number_with_a_leading_zero_and_a_duplicate_key_are_reported(read):
    found = read("a: 010\nb:\n  - -0_20\nc: '010'\nd: 012345678901\n")
    assert found.content["c"] == "010"
    assert found.content["d"] == "012345678901"
    assert [str(problem) for problem in found.problems] == [
        "x.yaml:1:4: a: 010 has two readings: 8 in YAML 1.1, whose leading zero means octal, and "
        '10 in YAML 1.2 [SW112]\n    Write 8 or 10; put a text in quotes: `"010"`.',
        "x.yaml:3:5: b[0]: -0_20 has two readings: -16 in YAML 1.1, whose leading zero means "
        "octal, and -20 in YAML 1.2 [SW112]\n"
        '    Write -16 or -20; put a text in quotes: `"-0_20"`.',
    ]
    found = read('a: 1\nb: {c: 1, c: 2}\na: 3\n"a": 4\n')
    assert [str(problem) for problem in found.problems] == [
        f"{field}: the key is given twice; the first is on line {line} [SW105]\n"
        "    Keep one of the two."
        for field, line in [("x.yaml:2:11: b.c", 2), ("x.yaml:3:1: a", 1), ("x.yaml:4:1: a", 1)]
    ]


def test_anchors_and_merges_are_expanded_and_own_keys_win(read):
    found = read(
        "base: &base {a: 1, b: 1}\nother: &other {a: 2, c: 2}\n"
        "one:\n  <<: *base\n  b: 3\nboth:\n  <<: [*base, *other]\nsame: *base\n"
    )
    assert found.content["one"] == {"a": 1, "b": 3}
    # Of several merged mappings the first wins, as YAML says.
    assert found.content["both"] == {"a": 1, "b": 1, "c": 2}
    assert found.content["same"] == {"a": 1, "b": 1}
    assert found.problems == ()
    assert found.positions[("one", "a")] == Location("x.yaml", 1, 14)


BOMB = "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10 if n else ['x'] * 10)}]\n" for n in range(9)
)
MERGE_BOMB = "".join(
    f"a{n}: &a{n}\n  {f'<<: [*a{n - 1}, *a{n - 1}]' if n else 'x: 1'}\n" for n in range(40)
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "x.yaml:1:1: the file is empty; a mapping is needed"),
        ("# nothing\n", "x.yaml:1:1: the file is empty; a mapping is needed"),
        ("- a\n", "x.yaml:1:1: the file is a list; a mapping is needed"),
        ("hello\n", "x.yaml:1:1: the file is a single value; a mapping is needed"),
        (b"\x89PNG\r\n\x1a\n", "x.yaml:1:1: the file is not UTF-8 text: it has the byte 0x89 here"),
        (
            "a: ä\nname: café".encode().replace("é".encode(), b"\xe9"),
            "x.yaml:2:10: the file is not UTF-8 text: it has the byte 0xE9 here, which is `é` in "
            "Latin-1",
        ),
        ("a: 1".encode("utf-16"), "x.yaml: the file is UTF-16 text, not UTF-8"),
        ("a: 1".encode("utf-16-le"), "x.yaml: the file is UTF-16LE text, not UTF-8"),
        ("a: 1".encode("utf-32"), "x.yaml: the file is UTF-32 text, not UTF-8"),
        ("a: \x00", "x.yaml: the file is not YAML: control characters are not allowed"),
        (
            "a:\n\t- b",
            "x.yaml:2:1: the file is not YAML: found character that cannot start any token",
        ),
        (
            "a: 1\n---\nb: 2",
            "x.yaml:2:1: the file has a second YAML document, which begins here with `---`",
        ),
        ("a: *x", "x.yaml:1:4: the file is not YAML: found undefined alias"),
        ("? [a]\n: 1", "x.yaml:1:3: the file has a key that is not a text"),
        ("<<: 3", "x.yaml:1:5: the file merges (`<<`) something that is not a mapping"),
        ("<<: [3]", "x.yaml:1:6: the file merges (`<<`) something that is not a mapping"),
        ("a: !!int abc", "x.yaml:1:4: the file has a value that YAML cannot read: 'abc'"),
        ("a: !!bool abc", "x.yaml:1:4: the file has a value that YAML cannot read: 'abc'"),
        ("a: !!timestamp abc", "x.yaml:1:4: the file has a value that YAML cannot read: 'abc'"),
        ("a: 2020-99-01", "x.yaml:1:4: the file has a value that YAML cannot read: '2020-99-01'"),
        (
            "a: !!python/object/apply:os.getcwd x",
            "x.yaml:1:4: the file has a value that YAML cannot read: 'x'",
        ),
        (
            "a: " + "9" * 5000,
            f"x.yaml:1:4: the file has a value that YAML cannot read: '{'9' * 80}'",
        ),
        ("a: &a [*a]", "x.yaml:1:4: the file is nested more than 50 levels deep"),
        ("a: &a\n  b: *a", "x.yaml:1:4: the file is nested more than 50 levels deep"),
        ("a: &a\n  <<: *a", "x.yaml:1:4: the file is nested more than 50 levels deep"),
        ("a: " + "[" * 100_000, "x.yaml:1:53: the file is nested more than 50 levels deep"),
        (BOMB, "x.yaml:1:37: the file has more than 20000 values once its aliases are expanded"),
        (
            MERGE_BOMB,
            "x.yaml:2:6: the file has more than 20000 values once its aliases are expanded",
        ),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_cannot_be_read_is_refused_with_its_place(read, text, expected):
    assert report(read, text) == expected


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("a: " + "[" * 50 + "]" * 50, "1:53"),
        ("a: " + "[" * 50 + "1" + "]" * 50, "1:53"),
        ("a: " + "{x: " * 50 + "1" + "}" * 50, "1:200"),
        ("".join(f"{' ' * level}k:\n" for level in range(50)) + f"{' ' * 50}k: 1", "51:51"),
        ("a: &x " + "[" * 30 + "]" * 30 + "\nb: " + "[" * 20 + "*x" + "]" * 20, "1:36"),
    ],
    ids=["empty list", "list", "mapping", "block", "alias"],
)
def test_fifty_levels_are_fine_and_one_more_is_refused(read, text, place):
    depth = document.MAX_DEPTH - 1
    read("a: " + "[" * depth + "]" * depth)
    assert report(read, text) == f"x.yaml:{place}: the file is nested more than 50 levels deep"


def test_a_file_is_read_anew_and_told_if_it_is_huge_gone_or_a_directory(tmp_path, read):
    path = tmp_path / "x.yaml"
    for value in (1, 2, 1):
        path.write_text(f"a: {value}")
        assert read_document(path, "x.yaml").content == {"a": value}
    assert read_document(path, "y.yaml").locate(("a",)).path == "y.yaml"
    text = "a: 1\n" + "#" * document.MAX_BYTES
    assert report(read, text) == (
        f"x.yaml: the file has {document.MAX_BYTES + 5} bytes; the limit is 1000000"
    )
    with pytest.raises(UserError, match=r"- x\.yaml: the file cannot be read: No such file"):
        read_document(tmp_path / "gone.yaml", "x.yaml")
    (tmp_path / "d.yaml").mkdir()
    with pytest.raises(UserError, match=r"- d\.yaml: the file cannot be read: Is a directory"):
        read_document(tmp_path / "d.yaml", "d.yaml")


@settings(max_examples=100, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(alphabet="ab:-[]{}&*<!>|'\"#%@?,~ \n\t1.", max_size=60).map(str.encode),
    )
)
def test_no_bytes_make_it_raise_anything_but_a_report(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(content)
    # Anything but a report would end the test.
    with contextlib.suppress(UserError):
        found = read_document(path, "any.yaml")
        assert all(place.line >= 1 and place.column >= 1 for place in found.positions.values())
