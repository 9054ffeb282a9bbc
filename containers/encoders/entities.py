"""Turns labelled tokens into entities, by the aggregation strategies of `transformers`.

- `none`: every token by itself.
- `simple`: neighbours with one label are one entity. A label `B-X` begins a new one, `I-X` goes on.
- `first`, `average`, `max`: like `simple`, applied to whole words. The word's label is the label of
  its first token, of the mean of its tokens' scores, or of the token with the highest score.

Words are split as the tokenizer splits them. An entity's text is cut out of the text that the
client sent, so its spelling is unchanged; `transformers` assembles it from the vocabulary instead.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy as np

from containers.encoders.outputs import Scores
from containers.encoders.tokenization import TokenizedText


@dataclass(frozen=True)
class _Labelled:
    label: str
    score: float
    start: int
    end: int


# Any: JSON.
def entities(
    text: TokenizedText,
    token_scores: Scores,
    names: Sequence[str],
    *,
    strategy: str,
    ignore_labels: Collection[str],
) -> list[dict[str, Any]]:
    """Returns the entities of a text, in its order, by one of the module's strategies.

    `token_scores` are [tokens, labels]. `ignore_labels` may have `B-` and `I-`, or not.

    The objects have `entity_group`, or with `none` `entity` and `index` (the token's number, from
    1), and `score`, `word`, `start` and `end` in characters of the text.
    """
    if strategy == "none":
        return [
            {
                "entity": token.label,
                "score": token.score,
                "index": number,
                "word": text.text[token.start : token.end],
                "start": token.start,
                "end": token.end,
            }
            for number, token in enumerate(_tokens(text, token_scores, names), start=1)
            if token.label not in ignore_labels
        ]
    parts = (
        _tokens(text, token_scores, names)
        if strategy == "simple"
        else _words(text, token_scores, names, _WORD_LABELS[strategy])
    )
    return [
        {
            "entity_group": group.label,
            "score": group.score,
            "word": text.text[group.start : group.end],
            "start": group.start,
            "end": group.end,
        }
        for group in _groups(parts)
        if group.label not in ignore_labels
    ]


def _tokens(text: TokenizedText, token_scores: Scores, names: Sequence[str]) -> Iterator[_Labelled]:
    for (start, end), row in zip(text.spans, token_scores, strict=True):
        label = int(row.argmax())
        yield _Labelled(names[label], float(row[label]), start, end)


def _words(
    text: TokenizedText,
    token_scores: Scores,
    names: Sequence[str],
    label_of: Callable[[Scores], tuple[int, float]],
) -> Iterator[_Labelled]:
    # A token that belongs to no word forms a word of its own.
    def word_of(token: int) -> tuple[bool, int]:
        word = text.words[token]
        return (True, token) if word is None else (False, word)

    for _, group in groupby(range(len(text)), key=word_of):
        tokens = list(group)
        label, score = label_of(token_scores[tokens[0] : tokens[-1] + 1])
        yield _Labelled(names[label], score, text.spans[tokens[0]][0], text.spans[tokens[-1]][1])


def _groups(parts: Iterator[_Labelled]) -> Iterator[_Labelled]:
    members: list[_Labelled] = []
    for part in parts:
        begins, name = _split(part.label)
        if members and (begins or name != _split(members[0].label)[1]):
            yield _joined(members)
            members = []
        members.append(part)
    if members:
        yield _joined(members)


def _joined(members: Sequence[_Labelled]) -> _Labelled:
    return _Labelled(
        label=_split(members[0].label)[1],
        # Plain Python, because NumPy takes several times as long for a few numbers.
        score=sum(member.score for member in members) / len(members),
        start=members[0].start,
        end=members[-1].end,
    )


def _split(label: str) -> tuple[bool, str]:
    """Returns whether a label begins an entity, and the entity's kind."""
    if label.startswith(("B-", "I-")):
        return label.startswith("B-"), label[2:]
    return False, label


def _first(word: Scores) -> tuple[int, float]:
    label = int(word[0].argmax())
    return label, float(word[0, label])


def _average(word: Scores) -> tuple[int, float]:
    mean = word.mean(axis=0)
    label = int(mean.argmax())
    return label, float(mean[label])


def _highest(word: Scores) -> tuple[int, float]:
    token, label = np.unravel_index(int(word.argmax()), word.shape)
    return int(label), float(word[token, label])


_WORD_LABELS: Final = {"first": _first, "average": _average, "max": _highest}
