"""Search queries of one to three words from AWS documentation, and how a user misspells them.

The dictionary is the most frequent words of the training sentences. A query is one of these words,
or two or three that follow each other in a sentence. `typos` has the spelling errors.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice
from typing import Final

from typos import KINDS, SHORTEST_MISSPELT_WORD, is_held_out, typos

DICTIONARY_WORDS: Final = 2000
# The words that follow in frequency, for measuring how the model treats words it never saw.
UNKNOWN_WORDS: Final = 1000
MOST_WORDS: Final = 3

# Shares of the training queries by their count of words.
_WORDS_SHARES: Final = (0.75, 0.18, 0.07)
_CORRECT_SHARE: Final = 0.1
# Of the queries of several words with a typo, those with a second typo in another word.
_SECOND_TYPO_SHARE: Final = 0.5
# Telephones capitalise the first letter.
_CAPITAL_SHARE: Final = 0.05
# Frequent words are asked for more often, but rare words have to be learnt as well.
_FREQUENCY_EXPONENT: Final = 0.25

_TOKEN: Final = re.compile(r"[A-Za-z0-9']+")
# Words that a search query leaves out.
_LEFT_OUT: Final = """
a about after all also an and any are as at be been but by can could did do does each for from had
has have how if in into is it its may more must no not of on only or other our out should so some
such than that the their them then there these they this those to too up was we were what when where
whether which who will with within without would you your
"""
_STOP_WORDS: Final = frozenset(_LEFT_OUT.split())


@dataclass(frozen=True)
class Pair:
    """What a user types, and what they mean.

    Attributes:
        typed: the input of the model.
        meant: the output.
    """

    typed: str
    meant: str


@dataclass(frozen=True)
class Vocabulary:
    """The words of the training sentences.

    Attributes:
        dictionary: the words to learn with their counts, most frequent first.
        unknown: the words that follow in frequency; training has none of them.
    """

    dictionary: dict[str, int]
    unknown: tuple[str, ...]


def words(sentence: str) -> list[str]:
    """Returns the words of a sentence in lower case; "" stands for what no query contains.

    These are stop words, identifiers such as `maxResults`, numbers, and words with an apostrophe.
    """
    return [
        token.lower() if _is_word(token) and token.lower() not in _STOP_WORDS else ""
        for token in _TOKEN.findall(sentence)
    ]


def _is_word(token: str) -> bool:
    is_cased = token.isupper() or token[1:].islower() or token[1:].isdigit()
    return token[0].isalpha() and len(token) > 1 and is_cased and "'" not in token


def count_words(sentences: Sequence[str]) -> Vocabulary:
    """Returns the most frequent words of the sentences."""
    counts = Counter(word for sentence in sentences for word in words(sentence) if word)
    # Equal counts are in alphabetical order, whatever order the sentences have.
    ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    dictionary = dict(ranked[:DICTIONARY_WORDS])
    following = (word for word, _ in ranked[DICTIONARY_WORDS:] if can_be_misspelt(word))
    return Vocabulary(dictionary, tuple(islice(following, UNKNOWN_WORDS)))


def can_be_misspelt(word: str) -> bool:
    """Returns whether a word has typos in this sample."""
    return len(word) >= SHORTEST_MISSPELT_WORD


def queries(
    sentences: Sequence[str], vocabulary: Vocabulary, *, length: int
) -> list[tuple[str, ...]]:
    """Returns every run of `length` dictionary words, as often as the sentences have it.

    Args:
        sentences: where the words follow each other.
        vocabulary: its dictionary has every word of a query.
        length: words of a query.
    """
    found = []
    for sentence in sentences:
        known = [word if word in vocabulary.dictionary else "" for word in words(sentence)]
        for start in range(len(known) - length + 1):
            run = tuple(known[start : start + length])
            if all(run) and any(map(can_be_misspelt, run)) and len(set(run)) == length:
                found.append(run)
    return found


class Misspeller:
    """Makes typos, those of training or the held-out ones; never another word of the dictionary.

    Args:
        vocabulary: its dictionary's words are no typos.
        chance: chooses among the typos.
        held_out: whether the typos are the held-out ones.
    """

    def __init__(self, vocabulary: Vocabulary, chance: random.Random, *, held_out: bool) -> None:
        self._dictionary = vocabulary.dictionary
        self._chance = chance
        self._held_out = held_out
        self._kinds = list(KINDS)
        self._limits = list(accumulate(share for _, share in KINDS.values()))

    def typo(self, word: str) -> str:
        """Returns a typo of a word that can be misspelt.

        Raises:
            ValueError: the word has no typo on this side of the split.
        """
        return self._any(word, lambda typo: is_held_out(word, typo) == self._held_out)

    def second_typo(self, typed: str, word: str) -> str:
        """Returns a typo of a typo, of either side of the split: training has no such pairs.

        Args:
            typed: a typo of the word.
            word: what the user means; the second typo does not mend the first.
        """
        return self._any(typed, lambda typo: typo != word)

    def _any(self, text: str, is_allowed: Callable[[str], bool]) -> str:
        without: set[str] = set()
        while len(without) < len(self._kinds):
            (kind,) = self._chance.choices(self._kinds, cum_weights=self._limits)
            found = [
                typo
                for typo in typos(text, kind)
                if is_allowed(typo) and typo not in self._dictionary
            ]
            if found:
                return self._chance.choice(found)
            without.add(kind)
        raise ValueError(f"{text} has no typo that is allowed")

    def misspell(self, query: Sequence[str], *, most: int = 1) -> str:
        """Returns a query with a typo in one of its words, or in more.

        Args:
            query: at least one word can be misspelt.
            most: the most words with a typo.
        """
        places = [place for place, word in enumerate(query) if can_be_misspelt(word)]
        typed = list(query)
        for place in self._chance.sample(places, min(most, len(places))):
            typed[place] = self.typo(typed[place])
        return " ".join(typed)


def training_pairs(sentences: Sequence[str], vocabulary: Vocabulary, seed: int) -> Iterator[Pair]:
    """Yields endless pairs, without any held-out typo.

    Args:
        sentences: where the words of a query follow each other.
        vocabulary: the words to learn.
        seed: of all choices.
    """
    chance = random.Random(seed)  # noqa: S311  (no secret depends on it)
    misspeller = Misspeller(vocabulary, chance, held_out=False)
    runs = [queries(sentences, vocabulary, length=length) for length in range(2, MOST_WORDS + 1)]
    single = [(word,) for word in vocabulary.dictionary]
    limits = list(
        accumulate(count**_FREQUENCY_EXPONENT for count in vocabulary.dictionary.values())
    )
    while True:
        (length,) = chance.choices(range(1, MOST_WORDS + 1), weights=_WORDS_SHARES)
        if length == 1:
            (query,) = chance.choices(single, cum_weights=limits)
        else:
            query = chance.choice(runs[length - 2])
        typed = " ".join(query)
        if chance.random() >= _CORRECT_SHARE and any(map(can_be_misspelt, query)):
            most = 2 if chance.random() < _SECOND_TYPO_SHARE else 1
            typed = misspeller.misspell(query, most=most)
        if chance.random() < _CAPITAL_SHARE:
            typed = typed.capitalize()
        yield Pair(typed, " ".join(query))
