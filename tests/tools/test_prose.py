"""The check of the pages' prose."""

from pathlib import Path

import pytest

from tools.prose import (
    LONGEST_CELL_WORDS,
    LONGEST_WORDS,
    findings,
    main,
    riddles,
)

LONG = " ".join(["Word", *["word"] * (LONGEST_WORDS - 1)])
LONG_CELL = " ".join(["word"] * LONGEST_CELL_WORDS)


def messages(text: str, path: str = "page.md") -> list[tuple[int, str]]:
    return [(finding.line, finding.message) for finding in findings(path, text)]


def test_a_sentence_of_too_many_words_is_found_with_its_line() -> None:
    assert messages(f"# A heading\n\nShort. {LONG}.\n") == []
    assert messages(f"# A heading\n\nShort. {LONG} more.\n") == [
        (3, "26 words, at most 25: Word word word word word word ...")
    ]


@pytest.mark.parametrize("end", [".", ".**", '."', ":", ";"])
def test_a_sentence_ends_with_its_last_sign(end: str) -> None:
    assert messages(f"{LONG}{end} {LONG}.\n") == []


def test_a_sentence_ends_with_its_list_item() -> None:
    assert messages(f"- {LONG}\n- {LONG}\n  and more\n") == [
        (2, "27 words, at most 25: Word word word word word word ...")
    ]


def test_code_and_headings_are_left_out() -> None:
    code = f"```sh\n{LONG} more words\n```\n"
    heading = f"## {LONG} more words\n"
    assert messages(f"{code}\n{heading}\nWords `{LONG} more words`.\n") == []


def test_a_cell_of_too_many_words_is_found_with_its_line() -> None:
    table = "| what | why |\n|---|---|\n| {} | short |\n"
    assert messages(table.format(LONG_CELL)) == []
    assert messages(table.format(f"{LONG_CELL} more")) == [
        (3, "26 words in a cell, at most 25: word word word word word word ...")
    ]


def test_in_a_cell_code_and_a_link_are_one_word_each() -> None:
    other = LONG_CELL.removesuffix(" word word")
    cell = f"{other} `some | long code` [a long text](https://example.com/a_(b)"
    assert messages(f"| {cell} | [{LONG_CELL}](page.md) |\n") == []
    # A bar that is escaped divides no cells.
    assert messages(f"| {LONG_CELL} \\| more |\n")[0][1].startswith("27 words in a cell")


def test_turns_that_make_a_reader_go_back_are_found() -> None:
    assert messages("Text.\n\nThe one of TensorRT builds two images.\n") == [
        (3, '"The one of": write a noun for "one": The one of TensorRT builds two ...')
    ]
    assert messages("| what |\n|---|\n| It cannot be had here. |\n") == [
        (3, '"cannot be had": write "available": It cannot be had here. ...')
    ]
    # Within another word it is another word.
    assert messages("Thence it goes, for hours.\n") == []


@pytest.mark.parametrize(
    "text",
    [
        'def put(lane):\n    """Puts a lane back, or away."""\n',
        "x = 1\n# Whether more is\n# read than the facts can list.\n",
        'text = (\n    "what the digest is of: the "\n    "same paths"\n)\n',
        "It is restarted as any\nother is.\n",
    ],
)
def test_riddles_are_found_across_lines_of_any_file(text: str) -> None:
    [finding] = riddles("module.py", text)
    first = text.splitlines()[finding.line - 1]
    assert finding.message.split('"')[1].split()[0] in first


def test_other_text_has_no_riddles() -> None:
    assert list(riddles("module.py", '"""Returns a usable lane to the pool."""\n# Or away\n')) == []


def test_the_command_fails_where_it_finds_something(tmp_path: Path, capsys) -> None:
    page = tmp_path / "folder" / "page.md"
    page.parent.mkdir()
    page.write_text("A sentence of ours.\n", "utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f'{page}:1: "of ours": write "Slipway\'s"')
    page.write_text("A sentence.\n", "utf-8")
    assert main([str(tmp_path), str(page)]) == 0
    (tmp_path / "config.yaml").write_text("key: 1  # who forgets it\n", "utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out == (
        f'{tmp_path}/config.yaml:1: riddle "who forgets": say who does what\n'
    )
