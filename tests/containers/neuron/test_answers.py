import itertools

import numpy as np
import pytest

from containers.encoders.answers import Span, WindowAnswers, question_answers, window_answers
from containers.encoders.windows import context_windows
from tests.containers.neuron.vocabularies import bert

WORDS = ("ada", "love", "##lace", "wrote", "the", "first", "program", "who", "?", ".")
CONTEXT = "Ada Lovelace wrote the first program."


@pytest.fixture(scope="module")
def tokenizer():
    return bert(WORDS)


def cut(tokenizer, context, max_tokens=128):
    return context_windows(
        tokenizer.pair, tokenizer.tokenize("who ?").token_ids, tokenizer.tokenize(context),
        name="inputs", max_tokens=max_tokens, overlap=None,
    )  # fmt: skip


def logits(window, high, columns=32):
    """Logits of a padded row: `high` by token of the context, -1 for the first column, 9 outside.

    What is outside the context would win if it were looked at.
    """
    row = np.full(columns, 9.0, np.float32)
    row[0] = -1.0
    row[window.columns()] = 0.0
    for token, value in high.items():
        row[window.row.first_column + token - window.tokens.start] = value
    return row


def naive(starts, ends, window, longest):
    """All spans with their scores, as the definition has it."""
    columns = [0, *range(window.columns().start, window.columns().stop)]

    def softmax(row):
        total = sum(np.exp(float(row[column])) for column in columns)
        return {column: float(np.exp(float(row[column]))) / total for column in columns}

    start, end = softmax(starts), softmax(ends)
    first = window.row.first_column - window.tokens.start
    return sorted(
        (
            (start[i + first] * end[j + first], i, j)
            for i, j in itertools.combinations_with_replacement(window.tokens, 2)
            if j - i < longest
        ),
        key=lambda span: (-span[0], span[1], span[2]),
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("top_k", "longest"), [(1, 15), (4, 2), (100, 3), (7, 1)])
def test_spans_are_those_of_the_definition(tokenizer, seed, top_k, longest):
    numbers = np.random.default_rng(seed)
    for window in cut(tokenizer, CONTEXT, max_tokens=11):
        starts, ends = numbers.normal(size=(2, 16)).astype(np.float32) * 3
        found = window_answers(starts, ends, window, top_k=top_k, max_answer_tokens=longest)
        expected = naive(starts, ends, window, longest)[:top_k]
        assert [(span.first_token, span.last_token) for span in found.spans] == [
            (i, j) for _, i, j in expected
        ]
        assert [span.score for span in found.spans] == pytest.approx([s for s, _, _ in expected])


def test_a_logit_that_is_no_number_is_an_error(tokenizer):
    [window] = cut(tokenizer, CONTEXT)
    row = logits(window, {0: float("nan")})
    with pytest.raises(FloatingPointError, match="not a finite number"):
        window_answers(row, row, window, top_k=1, max_answer_tokens=15)


def test_padding_may_hold_anything(tokenizer):
    [window] = cut(tokenizer, CONTEXT)
    row = logits(window, {2: 3.0})
    padded = row.copy()
    padded[len(window.row) :] = np.nan
    found = [
        window_answers(each, each, window, top_k=2, max_answer_tokens=5) for each in (row, padded)
    ]
    assert found[0] == found[1]


def answered(context, *windows, **options):
    defaults = {"top_k": 1, "handle_impossible_answer": False, "align_to_words": True}
    return question_answers(context, windows, **defaults | options)


def test_an_answer_is_cut_out_of_the_text_as_it_was_sent(tokenizer):
    context = tokenizer.tokenize("\U0001f600  ADA   Lovelace, wrote")
    first = [context.text[a:b] for a, b in context.spans].index("ADA")
    [answer] = answered(context, WindowAnswers((Span(0.5, first, first + 1),), 0.1))
    assert answer == {"score": 0.5, "start": 3, "end": 17, "answer": "ADA   Lovelace"}


def test_an_answer_is_widened_to_whole_words_unless_told_otherwise(tokenizer):
    context = tokenizer.tokenize(CONTEXT)
    half = WindowAnswers((Span(0.5, 0, 1),), 0.1)
    assert answered(context, half)[0]["answer"] == "Ada Lovelace"
    assert answered(context, half, align_to_words=False)[0]["answer"] == "Ada Love"
    other_half = WindowAnswers((Span(0.5, 2, 3),), 0.1)
    assert answered(context, other_half)[0]["answer"] == "Lovelace wrote"
    assert answered(context, other_half, align_to_words=False)[0]["answer"] == "lace wrote"


def test_the_best_of_several_windows_wins_and_the_same_span_counts_once(tokenizer):
    context = tokenizer.tokenize(CONTEXT)
    windows = (
        WindowAnswers((Span(0.3, 0, 2), Span(0.2, 3, 3)), 0.6),
        WindowAnswers((Span(0.9, 3, 3), Span(0.05, 5, 6)), 0.01),
    )
    assert [(each["answer"], each["score"]) for each in answered(context, *windows, top_k=10)] == [
        ("wrote", 0.9),
        ("Ada Lovelace", 0.3),
        ("first program", 0.05),
    ]


def test_no_answer_is_one_only_where_asked_and_every_window_says_so(tokenizer):
    context = tokenizer.tokenize(CONTEXT)
    unsure = WindowAnswers((Span(0.2, 0, 0),), 0.7)
    assert answered(context, unsure)[0]["answer"] == "Ada"
    assert answered(context, unsure, handle_impossible_answer=True) == [
        {"score": 0.7, "start": 0, "end": 0, "answer": ""}
    ]
    sure = WindowAnswers((Span(0.9, 3, 3),), 0.05)
    best = answered(context, unsure, sure, top_k=3, handle_impossible_answer=True)
    assert [each["answer"] for each in best] == ["wrote", "Ada", ""]
