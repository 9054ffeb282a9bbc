"""Every command is explained, and has examples that it accepts."""

import pytest

from tools.reference.commands import EXAMPLES, JOURNEY, commands, words_of


def test_every_command_option_and_argument_is_explained():
    found = commands()
    assert len(found) > 10
    assert list(EXAMPLES) == list(found)
    assert sorted(words for group in JOURNEY.values() for words in group) == sorted(found)
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
