"""The check of the pages' prose."""

from __future__ import annotations

from pathlib import Path

from tools.prose import LONGEST_WORDS, findings, main

LONG = " ".join(["Word", *["word"] * (LONGEST_WORDS - 1)])


def messages(text: str) -> list[tuple[int, str]]:
    return [(finding.line, finding.message) for finding in findings("page.md", text)]


def test_a_sentence_of_too_many_words_is_found_with_its_line() -> None:
    assert messages(f"# A heading\n\nShort. {LONG}.\n") == []
    assert messages(f"# A heading\n\nShort. {LONG} more.\n") == [
        (3, "36 words, at most 35: Word word word word word word ...")
    ]


def test_a_sentence_ends_with_its_list_item() -> None:
    assert messages(f"- {LONG}\n- {LONG}\n  and more\n") == [
        (2, "37 words, at most 35: Word word word word word word ...")
    ]


def test_code_tables_and_headings_are_left_out() -> None:
    code = f"```sh\n{LONG} more words\n```\n"
    table = f"| {LONG} more words |\n|---|\n"
    heading = f"## {LONG} more words\n"
    assert messages(f"{code}\n{table}\n{heading}\nWords `{LONG} more words`.\n") == []


def test_turns_that_make_a_reader_go_back_are_found() -> None:
    assert messages("Text.\n\nThe one of TensorRT builds two images.\n") == [
        (3, '"the one of": write a noun for "one": The one of TensorRT builds two ...')
    ]
    # Within another word it is another word.
    assert messages("Thence it goes.\n") == []


def test_the_command_fails_where_it_finds_something(tmp_path: Path, capsys) -> None:
    page = tmp_path / "folder" / "page.md"
    page.parent.mkdir()
    page.write_text("A sentence of ours.\n", "utf-8")
    assert main([str(tmp_path)]) == 1
    assert capsys.readouterr().out.startswith(f'{page}:1: "of ours": write "Slipway\'s"')
    page.write_text("A sentence.\n", "utf-8")
    assert main([str(tmp_path), str(page)]) == 0
