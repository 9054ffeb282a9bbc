"""Answers to questions: finds the best spans of a context in the logits of its windows.

A span's score is the probability of its start times the probability of its end, as in
`transformers`. Both probabilities are taken over the window's context and its first token, which
stands for "no answer here". A window without the answer therefore gives low scores, and scores of
several windows can be compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from containers.encoders.outputs import scores
from containers.encoders.tokenization import TokenizedText
from containers.encoders.windows import Window

# The column of the first special token. Models are trained to point at it if there is no answer.
_NO_ANSWER_COLUMN: Final = 0


@dataclass(frozen=True, order=True)
class Span:
    """A possible answer: its score, 0 to 1, and its first and last token in the context."""

    score: float
    first_token: int
    last_token: int


@dataclass(frozen=True)
class WindowAnswers:
    """The answers that one window gives, best first, and the score of its holding none."""

    spans: tuple[Span, ...]
    no_answer_score: float


def window_answers(
    start_logits: NDArray[np.floating[Any]],
    end_logits: NDArray[np.floating[Any]],
    window: Window,
    *,
    top_k: int,
    max_answer_tokens: int,
) -> WindowAnswers:
    """Finds the best spans of one window, at most `top_k`.

    The logits are one per column of the row; padding may be included. Raises `FloatingPointError`
    if a logit is not a finite number.
    """
    starts, no_start = _probabilities(start_logits, window)
    ends, no_end = _probabilities(end_logits, window)
    # Row `length` holds the scores of all spans of `length + 1` tokens, by their first token.
    lengths = min(max_answer_tokens, len(starts))
    scores = np.full((lengths, len(starts)), -1.0)
    for length in range(lengths):
        scores[length, : len(starts) - length] = starts[: len(starts) - length] * ends[length:]
    flat = scores.ravel()
    # No more than the real spans: a span beyond the last token has a negative score.
    count = min(top_k, int(np.count_nonzero(flat >= 0)))
    best = np.argpartition(-flat, count - 1)[:count]
    spans = []
    for index in best.tolist():
        length, first = divmod(index, len(starts))
        first_token = window.tokens.start + first
        spans.append(Span(float(flat[index]), first_token, first_token + length))
    # Among equal scores, the first span in the text and the shorter one come first.
    spans.sort(key=lambda span: (-span.score, span.first_token, span.last_token))
    return WindowAnswers(tuple(spans), no_start * no_end)


# Any: JSON.
def question_answers(
    context: TokenizedText,
    windows: Sequence[WindowAnswers],
    *,
    top_k: int,
    handle_impossible_answer: bool,
    align_to_words: bool,
) -> list[dict[str, Any]]:
    """Joins the answers of all windows of a question.

    With `handle_impossible_answer`, an empty text at position 0 can be an answer. Its score is the
    lowest `no_answer_score` of any window. With `align_to_words`, answers are widened to whole
    words.

    Returns objects with `score`, `start`, `end` (in characters of the text as it was sent) and
    `answer`, the best first. Spans of the same characters are one answer, with the best score.
    """
    spans = sorted(
        (span for window in windows for span in window.spans),
        key=lambda span: (-span.score, span.first_token, span.last_token),
    )
    scores: dict[tuple[int, int], float] = {}
    for span in spans:
        scores.setdefault(_characters(context, span, align_to_words=align_to_words), span.score)
    answers: list[dict[str, Any]] = [
        {"score": score, "start": start, "end": end, "answer": context.text[start:end]}
        for (start, end), score in scores.items()
    ]
    if handle_impossible_answer:
        score = min(window.no_answer_score for window in windows)
        answers.append({"score": score, "start": 0, "end": 0, "answer": ""})
        answers.sort(key=lambda answer: -answer["score"])
    return answers[:top_k]


def _probabilities(
    logits: NDArray[np.floating[Any]], window: Window
) -> tuple[NDArray[np.float64], float]:
    """Returns the probabilities of the context's tokens, and the probability of "no answer"."""
    considered = np.append(logits[window.columns()], logits[_NO_ANSWER_COLUMN])
    probabilities = scores(considered, "softmax")
    return probabilities[:-1], float(probabilities[-1])


def _characters(context: TokenizedText, span: Span, *, align_to_words: bool) -> tuple[int, int]:
    first, last = span.first_token, span.last_token
    if align_to_words:
        words = context.words
        while first and words[first] is not None and words[first - 1] == words[first]:
            first -= 1
        while last + 1 < len(words) and words[last] is not None and words[last + 1] == words[last]:
            last += 1
    return context.spans[first][0], context.spans[last][1]
