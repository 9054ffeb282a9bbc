"""Stop texts: cut to the character, however the text falls into tokens and bytes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies
from tokenizers import Tokenizer

from containers.tensorrt.stop_sequences import AnswerText, GrowingText
from tests.containers.tensorrt.sample_model import SAMPLE


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_file(str(SAMPLE / "tokenizer.json"))


def decode_bytes(token_ids):
    """The smallest tokenizer there is: a token is a byte."""
    return bytes(token_ids).decode("utf-8", errors="replace")


def cut(text, *stop_texts):
    """What is left of `text`, and after how many bytes it is known."""
    watch = AnswerText(decode_bytes, stop_texts)
    for place, byte in enumerate(text.encode(), start=1):
        if watch.add(byte):
            return watch.finish(), place
    return watch.finish(), -1


def test_pieces_joined_are_the_whole_text(tokenizer):
    """Of random tokens, so that characters break in every possible place."""
    random = np.random.default_rng(3)
    broken = 0
    for _ in range(300):
        # The first 300 tokens are mostly single bytes.
        limit = int(random.choice([300, tokenizer.get_vocab_size()]))
        token_ids = random.integers(0, limit, size=24).tolist()
        growing = GrowingText(tokenizer.decode)
        pieces = [growing.add(token) for token in token_ids]
        broken += "" in pieces
        assert "".join(pieces) + growing.finish() == tokenizer.decode(token_ids)
    assert broken > 50


@pytest.mark.parametrize(
    "text", ["caf\u00e9 \u65e5\u672c\U0001f600.", "plain", "\ufffd end", "\ufffd"]
)
def test_a_character_comes_out_with_its_last_byte(text):
    growing = GrowingText(decode_bytes)
    pieces = [growing.add(byte) for byte in text.encode()]
    assert "".join(pieces) + growing.finish() == text
    if "\ufffd" not in text:
        assert [piece for piece in pieces if piece] == list(text)


@pytest.mark.parametrize(
    ("text", "stop_texts", "expected"),
    [
        ("one. two. three", [". "], ("one", 5)),
        ("one. two", ["!"], ("one. two", -1)),
        ("stop", ["stop"], ("", 4)),
        # The one that is complete first, not the one that begins first.
        ("abcdefgh", ["bcdefg", "de"], ("abc", 5)),
        # Of two that are complete together the longer one.
        ("abcdef", ["de", "bcde"], ("a", 5)),
        ("aaab", ["aab"], ("a", 4)),
        # A stop text in the middle of a character's bytes is none; after them it is.
        ("x\u00e9\u65e5y", ["\u65e5"], ("x\u00e9", 6)),
        ("x\U0001f600", ["\U0001f600"], ("x", 5)),
    ],
)
def test_the_text_is_cut_before_the_stop_text(text, stop_texts, expected):
    assert cut(text, *stop_texts) == expected


@pytest.mark.parametrize(
    "tokens", [["abcdefgh"], ["a", "bcdefgh"], ["abcd", "efgh"], list("abcdefgh")]
)
def test_the_cut_does_not_depend_on_the_tokens(tokens):
    watch = AnswerText(lambda ids: "".join(tokens[i] for i in ids), ["bcdefg", "de"])
    for token in range(len(tokens)):
        if watch.add(token):
            break
    assert watch.finish() == "abc"


def test_an_unfinished_character_at_the_end_stays_and_can_stop():
    half = "a\u65e5".encode()[:-1]
    for stop_text, expected in (("b", "a\ufffd"), ("\ufffd", "a")):
        watch = AnswerText(decode_bytes, [stop_text])
        assert not any(watch.add(byte) for byte in half)
        assert watch.finish() == expected


@settings(max_examples=300, deadline=None)
@given(
    text=strategies.text("ab\u65e5", max_size=20),
    stop_texts=strategies.lists(strategies.text("ab\u65e5", min_size=1, max_size=4), max_size=3),
)
def test_what_is_taken_is_never_taken_back(text, stop_texts):
    answer = AnswerText(decode_bytes, stop_texts)
    pieces = []
    for byte in text.encode():
        is_stopped = answer.add(byte)
        pieces.append(answer.take())
        if is_stopped:
            break
    whole = answer.finish()
    assert "".join(pieces) + answer.take_rest() == whole
    assert whole == cut(text, *stop_texts)[0]


def test_only_what_may_begin_a_stop_text_is_held_back():
    answer = AnswerText(decode_bytes, ["abc", "bd"])
    taken = []
    for byte in b"xxaabxab":
        answer.add(byte)
        taken.append(answer.take())
    assert taken == ["x", "x", "", "a", "", "abx", "", ""]
    answer.finish()
    assert answer.take_rest() == "ab"
