"""Measures how many misspelt words and queries the graphs correct, through the server's code."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from queries import MOST_WORDS, Misspeller, Pair, can_be_misspelt, count_words, queries

from containers.tensorrt.tokenization import PromptTokenizer
from containers.triton.decoding import answers
from containers.triton.model_directory import read_config
from containers.triton.onnx_session import OnnxSequenceSession
from samples.documentation import Corpus

# Queries of two words and of three words, each.
QUERIES_OF_A_LENGTH: Final = 1000
_ROWS_PER_BATCH: Final = 64


@dataclass(frozen=True)
class HeldOut:
    """The counts of what was measured, and the shares that the model answered exactly, in percent.

    Every typo is a held-out one: training had no pair of this typo and this word. Training had no
    word with two typos.

    Attributes:
        words: dictionary words that can be misspelt, each measured alone with one typo.
        words_corrected: share of them.
        words_with_two_typos_corrected: share of the same words, each with a typo of a typo.
        words_kept: share of the same words, each spelt correctly.
        queries: queries of two or three dictionary words, from held-out sentences, each with a typo
            in one of the words.
        queries_corrected: share of them.
        queries_kept: share of the same queries, each spelt correctly.
        unknown_words: words that are not in the dictionary, so that training had them in no form.
        unknown_words_corrected: share of them, each measured alone with one typo.
        unknown_words_kept: share of the same words, each spelt correctly.
    """

    words: int
    words_corrected: float
    words_with_two_typos_corrected: float
    words_kept: float
    queries: int
    queries_corrected: float
    queries_kept: float
    unknown_words: int
    unknown_words_corrected: float
    unknown_words_kept: float


class Corrector:
    """The graphs and the tokenizer of a model directory.

    Args:
        model_dir: holds them.
        most_tokens: of a query, and of an answer.
    """

    def __init__(self, model_dir: Path, *, most_tokens: int) -> None:
        self._config = read_config(model_dir)
        self._tokenizer = PromptTokenizer.read(model_dir / "tokenizer.json")
        self._session = OnnxSequenceSession(model_dir, threads=1)
        self._most_tokens = most_tokens

    def correct(self, texts: Sequence[str]) -> list[str]:
        """Returns the answer to each text."""
        # Texts of one length together, so that a batch has little padding.
        order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
        found = [""] * len(texts)
        for start in range(0, len(order), _ROWS_PER_BATCH):
            chosen = order[start : start + _ROWS_PER_BATCH]
            prompts = self._tokenizer.encode(
                [texts[index] for index in chosen], max_tokens=self._most_tokens
            )
            batch = answers(
                self._session,
                prompts,
                max_new_tokens=self._most_tokens,
                start_token_id=self._config.start_token_id,
                end_token_ids=self._config.end_token_ids,
            )
            for index, tokens in zip(chosen, batch, strict=True):
                found[index] = self._tokenizer.decode(list(tokens))
        return found

    def share(self, pairs: Iterable[Pair]) -> float:
        """Returns the share of pairs that are answered exactly, in percent."""
        asked = list(pairs)
        found = self.correct([pair.typed for pair in asked])
        right = sum(pair.meant == text for pair, text in zip(asked, found, strict=True))
        return round(100 * right / len(asked), 1)


def measure(model_dir: Path, corpus: Corpus, *, seed: int, most_tokens: int) -> HeldOut:
    """Measures the graphs of a model directory; see `HeldOut`.

    Args:
        model_dir: holds the graphs.
        corpus: the training sentences have the dictionary, the held-out ones the queries.
        seed: of the choice of queries and typos.
        most_tokens: of a query, and of an answer.
    """
    corrector = Corrector(model_dir, most_tokens=most_tokens)
    vocabulary = count_words(corpus.training)
    chance = random.Random(seed)  # noqa: S311  (no secret depends on it)
    misspeller = Misspeller(vocabulary, chance, held_out=True)
    words = [word for word in vocabulary.dictionary if can_be_misspelt(word)]
    once = [Pair(misspeller.typo(word), word) for word in words]
    asked = [
        " ".join(run)
        for length in range(2, MOST_WORDS + 1)
        for run in chance.sample(
            sorted(set(queries(corpus.held_out, vocabulary, length=length))), QUERIES_OF_A_LENGTH
        )
    ]

    def kept(texts: Iterable[str]) -> float:
        return corrector.share(Pair(text, text) for text in texts)

    return HeldOut(
        words=len(words),
        words_corrected=corrector.share(once),
        words_with_two_typos_corrected=corrector.share(
            Pair(misspeller.second_typo(pair.typed, pair.meant), pair.meant) for pair in once
        ),
        words_kept=kept(words),
        queries=len(asked),
        queries_corrected=corrector.share(
            Pair(misspeller.misspell(text.split()), text) for text in asked
        ),
        queries_kept=kept(asked),
        unknown_words=len(vocabulary.unknown),
        unknown_words_corrected=corrector.share(
            Pair(misspeller.typo(word), word) for word in vocabulary.unknown
        ),
        unknown_words_kept=kept(vocabulary.unknown),
    )
