"""The check of the pages' prose."""

from tools.prose import MOST_WORDS, findings

LONG = " ".join(["Word", *["word"] * (MOST_WORDS - 1)])


def test_sentences_items_and_cells_of_too_many_words_are_found():
    fitting = f"# {LONG} more\n\n{LONG}. {LONG}.\n- {LONG}\n- {LONG}\n\n| {LONG} | {LONG} |\n"
    assert list(findings(f"{fitting}\n```sh\n{LONG} more\n```\n`{LONG}` [more]({LONG})\n")) == []
    for text in (f"Short. {LONG} more.", f"- {LONG}\n  more", f"| {LONG} more | a |"):
        assert [each.partition(":")[0] for each in findings(text)] == ["26 words, at most 25"]


def test_turns_are_found():
    assert [each.partition(":")[0] for each in findings("It is one of\nours, hence good.")] == [
        '"ours", write "Slipway"',
        '"hence", write "therefore"',
    ]
