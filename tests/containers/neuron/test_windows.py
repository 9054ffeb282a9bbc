import itertools
from functools import partial

import pytest
from tokenizers import processors

from containers.encoders.tokenization import TextTokenizer
from containers.encoders.windows import (
    context_windows,
    kept_tokens,
    text_windows,
    token_windows,
    whole_text,
)
from containers.serving.errors import InvalidRequestError
from containers.serving.predictor import ModelLoadError
from tests.containers.neuron.vocabularies import bert, bert_tokenizer, roberta_tokenizer
from tests.support.messages import message_of

LETTERS = tuple("abcdefghij")


def test_bert_rows_are_those_of_the_tokenizer_itself():
    plain, tokenizer = bert_tokenizer(LETTERS), bert(LETTERS)
    row = tokenizer.pair.row(tokenizer.tokenize("a b").token_ids, tokenizer.tokenize("c").token_ids)
    expected = plain.encode("a b", "c")
    assert list(row.token_ids) == expected.ids == [2, 4, 5, 3, 6, 3]
    assert list(row.type_ids) == expected.type_ids == [0, 0, 0, 0, 1, 1]
    assert row.first_column == 4
    single = tokenizer.single.row(tokenizer.tokenize("a b").token_ids)
    assert list(single.token_ids) == plain.encode("a b").ids
    assert single.first_column == 1


def test_roberta_rows_are_those_of_the_tokenizer_itself():
    plain = roberta_tokenizer(["who wrote it", "ada wrote it"] * 3)
    tokenizer = TextTokenizer(plain)
    row = tokenizer.pair.row(
        tokenizer.tokenize("who wrote it").token_ids, tokenizer.tokenize("ada wrote it").token_ids
    )
    expected = plain.encode("who wrote it", "ada wrote it")
    assert list(row.token_ids) == expected.ids
    assert list(row.type_ids) == expected.type_ids
    assert tokenizer.pair.special_tokens == 4
    assert row.first_column == expected.sequence_ids.index(1)


def test_spans_are_characters_of_the_original_text():
    text = bert(["ada", "strasse", "x"]).tokenize("\u00c9\U0001f600 ADA  x")
    assert [text.text[start:end] for start, end in text.spans][-2:] == ["ADA", "x"]


def test_a_tokenizer_without_special_tokens_is_refused():
    tokenizer = bert_tokenizer(LETTERS)
    tokenizer.post_processor = processors.Sequence([])
    with pytest.raises(ModelLoadError, match="puts no special token before a text"):
        TextTokenizer(tokenizer)


@pytest.mark.parametrize(
    ("room", "overlap"), [(1, 0), (5, 0), (5, 2), (5, 4), (8, 7), (10, 5), (12, 0)]
)
def test_windows_cover_every_token_which_the_one_that_knows_most_about_it_keeps(room, overlap):
    for tokens in range(60):
        windows = token_windows(tokens, room=room, overlap=overlap)
        assert windows[0].start == 0
        assert windows[-1].stop == tokens
        assert all(len(window) <= room for window in windows)
        assert all(len(window) == room for window in windows[:-1])
        for before, after in itertools.pairwise(windows):
            assert before.stop - after.start == overlap
            assert after.stop > before.stop
        kept = kept_tokens(windows)
        assert list(itertools.chain(*kept)) == list(range(tokens))
        for window, own in zip(windows, kept, strict=True):
            for token in own:
                others = [margin(token, other, tokens) for other in windows if token in other]
                assert margin(token, window, tokens) == max(others)


def margin(token, window, tokens):
    """How much of the text a window has on both sides of a token."""
    before = token - window.start if window.start else tokens
    after = window.stop - 1 - token if window.stop < tokens else tokens
    return min(before, after)


def cut(question, context, overlap=None):
    tokenizer = bert(LETTERS)
    asked, text = tokenizer.tokenize(question).token_ids, tokenizer.tokenize(context)
    return context_windows(
        tokenizer.pair, asked, text, name="inputs[1]", max_tokens=8, overlap=overlap
    )


def test_a_long_context_is_cut_with_the_question_in_every_window():
    windows = cut("j", "a b c d e f g", overlap=2)
    assert [list(window.tokens) for window in windows] == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6]]
    context = bert(LETTERS).tokenize("a b c d e f g")
    for window in windows:
        assert window.row.token_ids[:3] == (2, 13, 3)
        inside = window.row.token_ids[window.columns()]
        assert inside == tuple(context.token_ids[token] for token in window.tokens)
        assert set(window.row.type_ids[window.columns()]) == {1}


def test_the_longest_question_leaves_room_for_one_token():
    assert message_of(InvalidRequestError, cut, "a b c d e", "a") == (
        "inputs[1].question has 5 tokens, which leave no room for the context in a window of 8: at "
        "most 4 do; shorten it, or set max_question_len."
    )
    assert [list(window.tokens) for window in cut("a b c d", "e f")] == [[0], [1]]


def test_an_overlap_that_leaves_nothing_new_is_refused_where_it_matters():
    tokenizer = bert(LETTERS)

    def windows(text):
        tokens = tokenizer.tokenize(text)
        return text_windows(tokenizer.single, tokens, name="inputs", max_tokens=8, overlap=6)

    assert message_of(InvalidRequestError, windows, "a b c d e f g") == (
        "stride=6 leaves nothing new in a window of inputs, which holds 6 tokens of the text: it "
        "must be below 6."
    )
    [window] = windows("a")
    assert list(window.tokens) == [0]


def test_a_text_that_is_too_long_is_cut_off_only_where_asked():
    tokenizer = bert(LETTERS)
    text = tokenizer.tokenize("a b c d")
    cut_off = partial(
        whole_text, tokenizer.single, text, name="inputs", parameter="truncation", max_tokens=5
    )
    assert message_of(InvalidRequestError, cut_off, truncate=False) == (
        "inputs has 4 tokens; the limit is 3. Shorten it, or set truncation to true."
    )
    assert cut_off(truncate=True).token_ids == (2, 4, 5, 6, 3)
