"""The pages of the commands are the commands'."""

from pathlib import Path

import pytest

import slipway
from slipway.cli.reference import EXAMPLES, commands, render, words_of

FOLDER = Path(slipway.__file__).parents[1] / "docs" / "commands"


def test_the_pages_in_docs_are_up_to_date():
    pages = {path.name: path.read_text("utf-8") for path in FOLDER.glob("*.md")}
    assert pages == render(), "run python -m slipway.cli.reference"


def test_every_command_option_and_argument_is_explained():
    found = commands()
    assert len(found) > 10
    assert list(EXAMPLES) == list(found)
    for words, command in found.items():
        assert command.help, words
        unexplained = [each.name for each in command.params if not each.help]
        assert unexplained == [], words


@pytest.mark.parametrize(
    ("words", "line"),
    [(words, example.line) for words, examples in EXAMPLES.items() for example in examples],
)
def test_an_example_is_a_command_line_of_its_command(words, line):
    given = words_of(line)
    count = len(words.split())
    assert " ".join(given[:count]) == words
    # Raises where an option, an argument or a value is wrong.
    commands()[words].make_context(words, given[count:])
